"""Calibration of the whole catalog from a folder of published measurements.

    python -m meshwright.measure.catalog FOLDER

fits links (collectives.csv), kernels (gemm.csv, attention.csv) and then what training keeps of them (training.csv, some
minutes), and writes the constants into the catalog, each with its evidence. The same folder leaves the same files.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from meshwright.measure import catalog_training, kernels, links
from meshwright.measure.catalog_fit import TRAINING

STEPS = {
    "links": (links.__name__, (links.FILE,)),
    "kernels": (kernels.__name__, (kernels.MATMULS, kernels.ATTENTION)),
    "what training keeps of them": (catalog_training.__name__, (TRAINING,)),
}
"""What is fitted, by which module, from which files; later ones read what earlier ones wrote."""


def main(arguments: list[str], run: Callable[[str, str], int] | None = None) -> int:
    """Every step; the exit status. `run` takes a step's module and the folder, and returns its exit status."""
    if len(arguments) != 1:
        print("usage: python -m meshwright.measure.catalog FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    missing = [name for _, files in STEPS.values() for name in files if not (folder / name).is_file()]
    if missing:
        print(f"error: {folder} has no {', no '.join(missing)}", file=sys.stderr)
        return 2
    for title, (module, _) in STEPS.items():
        print(f"fitting {title}", file=sys.stderr, flush=True)
        status = (run or _in_new_process)(module, str(folder))
        if status:
            return status
    return 0


def _in_new_process(module: str, folder: str) -> int:
    """The catalog is read once a process, so that a step sees what the one before wrote only in a new one."""
    return subprocess.run([sys.executable, "-m", module, folder], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
