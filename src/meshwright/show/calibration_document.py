"""A calibration as JSON. The field names are a contract: SI units, with the unit in the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshwright.show.document import Document
from meshwright.show.validation_document import errors_document
from meshwright.sources.cluster_files import cluster_content

if TYPE_CHECKING:
    from meshwright.measure.calibration import Calibration


def calibration_document(calibration: Calibration) -> Document:
    """Constants, errors before and after, and the calibrated cluster as its file holds it. Errors are shares; what
    can't be said is null."""
    left = calibration.cross_validated
    return {
        "files": list(calibration.files),
        "cluster": calibration.given.name,
        "runs": len(calibration.comparisons),
        "jobs": calibration.jobs,
        "constants": [
            {
                "name": each.name,
                "unit": each.unit,
                "before": each.before,
                "value": each.value,
                "standard_error": each.standard_error,
                "weight": each.trust,
                "kept": each.kept or None,
            }
            for each in calibration.constants
        ],
        "errors": {
            "before": errors_document(calibration.before),
            "after": errors_document(calibration.after),
            "left_out": None if left is None else errors_document(left),
        },
        "folds": calibration.folds,
        "better": calibration.better,
        "not_used": [{"row_id": row, "reason": reason} for row, reason in calibration.left_out],
        "calibrated": cluster_content(calibration.cluster),
    }
