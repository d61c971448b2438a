"""The accuracy that the catalog's constants showed on sources that they were not fitted to, from the catalog."""

from __future__ import annotations

from functools import cache

from meshwright.sources.catalog import CATALOG, load_entry
from meshwright.sources.fields import Fields
from meshwright.spec.accuracy import Accuracy, Spread

NAME = "training"
_SPREAD = ("low", "high", "rows", "sources")
_KEYS = ("name", "title", "source", "overall", "regimes", "accelerators", "profiles", "unmeasured")


@cache
def load_accuracy() -> Accuracy:
    """Of training steps."""
    where = str(CATALOG / "accuracy" / f"{NAME}.yaml")
    fields = Fields(where, load_entry("accuracy", NAME), _KEYS)
    named = fields.items("regimes", ("name", *_SPREAD))
    return Accuracy(
        overall=_spread(fields.inner("overall", _SPREAD)),
        regimes={each.text("name"): _spread(each) for each in named},
        accelerators=frozenset(fields.texts("accelerators")),
        profiles=frozenset(fields.texts("profiles")),
        unmeasured=fields.not_negative("unmeasured"),
    )


def _spread(fields: Fields) -> Spread:
    return Spread(
        fields.share("low"), fields.positive("high", least=1.0), fields.whole("rows"), fields.whole("sources")
    )
