"""The baseline that everyone quotes: tensor parallel inside the node, pipeline across nodes, data parallel outermost.

Narayanan et al. 2021 (SC21), takeaways 1 and 2: tensor parallel up to the accelerators of a server; then as many
pipeline stages as it takes for the model to fit; then data parallel. It is priced like any other plan and assumed
nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from meshwright.choose.explain.facts import Alternative
from meshwright.choose.explain.families import Compared
from meshwright.spec.rules import divisors, legal_tensor_degrees

NAME, TITLE = "slogan", "tensor inside the node, pipeline across nodes, data outermost"
ORDER = ("tp", "cp", "pp", "dp")


def slogan(compared: Compared) -> Alternative | None:
    """The best plan of that shape: tensor parallel as wide as a node, or the widest below it that the model allows; the
    fewest stages with which plain replicas fit; optimizer states sharded or not, whichever is better. None for a
    single accelerator. What is pinned doesn't bind it."""
    job, accelerators = compared.job, compared.accelerators
    if accelerators == 1:
        return None
    free = replace(compared, pins={})
    node = min(job.cluster.accelerators_per_node, accelerators)
    tp = max(t for t in legal_tensor_degrees(job) if node % t == 0 and accelerators % t == 0)
    shape: dict[str, Any] = {"tp": tp, "cp": 1, "ep": 1, "order": ORDER, "offload": "none"}
    options = divisors(accelerators // tp)
    fewest = next((pp for pp in options if free.found({**shape, "pp": pp, "sharding": "none"}).ranked), options[-1])
    sharding = frozenset(("none", "optimizer"))
    return free.best_of(NAME, TITLE, ({**shape, "pp": fewest, "sharding": sharding},))
