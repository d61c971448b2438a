"""Why this plan, why not the others, and what would change the answer."""

from meshwright.choose.explain.explain import explain
from meshwright.choose.explain.facts import Explanation

__all__ = ["Explanation", "explain"]
