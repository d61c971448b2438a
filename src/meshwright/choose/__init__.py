"""The candidate space, the search over it, and the ranking with its reasons."""

from meshwright.choose.fixed import FIELDS
from meshwright.choose.objective import OBJECTIVES
from meshwright.choose.ranking import Ranking, choose
from meshwright.choose.reasons import Rejection

__all__ = ["FIELDS", "OBJECTIVES", "Ranking", "Rejection", "choose"]
