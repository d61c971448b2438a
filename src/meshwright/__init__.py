"""Find the parallel layout that makes a transformer training run fastest on the cluster you have, and see why.

    import meshwright as mw

    ranking = mw.choose("llama-3.1-70b", "32xdgx-a100-80g", mw.Training(global_batch=1024, seq_len=4096))
    ranking.best.plan, ranking.best.step_time_s

This is the whole public API. Nothing heavy is imported before a name is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meshwright.choose import Ranking
    from meshwright.choose.explain import Explanation
    from meshwright.choose.scaling import Scaling
    from meshwright.measure.calibration import Calibration
    from meshwright.measure.report import Validation
    from meshwright.sources.clusters import load_cluster, save_cluster
    from meshwright.sources.models import load_model
    from meshwright.sources.plans import load_plan, save_plan
    from meshwright.sources.software import load_software
    from meshwright.spec.cluster import Accelerator, Cluster, Level
    from meshwright.spec.errors import InputError, MeshwrightError
    from meshwright.spec.estimate import Estimate
    from meshwright.spec.model import Model
    from meshwright.spec.plan import Plan
    from meshwright.spec.software import Software
    from meshwright.spec.workload import Training

    __version__: str

__all__ = [
    "Accelerator",
    "Calibration",
    "Cluster",
    "Estimate",
    "Explanation",
    "InputError",
    "Level",
    "MeshwrightError",
    "Model",
    "Plan",
    "Ranking",
    "Scaling",
    "Software",
    "Training",
    "Validation",
    "__version__",
    "calibrate",
    "choose",
    "estimate",
    "explain",
    "load_cluster",
    "load_model",
    "load_plan",
    "load_software",
    "save_cluster",
    "save_plan",
    "scale",
    "validate",
]

_HOMES = {
    "Accelerator": "spec.cluster",
    "Calibration": "measure.calibration",
    "Cluster": "spec.cluster",
    "Estimate": "spec.estimate",
    "Explanation": "choose.explain",
    "InputError": "spec.errors",
    "Level": "spec.cluster",
    "MeshwrightError": "spec.errors",
    "Model": "spec.model",
    "Plan": "spec.plan",
    "Ranking": "choose",
    "Scaling": "choose.scaling",
    "Software": "spec.software",
    "Training": "spec.workload",
    "Validation": "measure.report",
    "load_cluster": "sources.clusters",
    "load_model": "sources.models",
    "load_plan": "sources.plans",
    "load_software": "sources.software",
    "save_cluster": "sources.clusters",
    "save_plan": "sources.plans",
}


def estimate(
    model: Model | str,
    cluster: Cluster | str | Path,
    workload: Training,
    plan: Plan,
    software: Software | str | None = None,
) -> Estimate:
    """Time and memory of one plan. Model, cluster and software may be given as `load_model`, `load_cluster` and
    `load_software` take them; without software the current profile is used.

    A plan that breaks a rule or doesn't fit is estimated all the same; `problems` of the result says what is wrong.
    Raises InputError for a name that isn't known and for a dtype that the accelerator has no unit for.
    """
    from meshwright.cost.estimate import estimate as price

    return price(_model(model), _cluster(cluster), workload, plan, _software(software))


def choose(
    model: Model | str,
    cluster: Cluster | str | Path,
    workload: Training,
    software: Software | str | None = None,
    *,
    objective: str = "throughput",
    top: int = 10,
    fixed: Mapping[str, Any] | None = None,
) -> Ranking:
    """The best plans for the job, the best one first. Model, cluster and software as for `estimate`.

    `objective` is throughput, latency, cost, memory or fewest (accelerators); `top` is how many plans to rank; `fixed`
    pins plan fields by their JSON names, such as {"tp": 8}.
    """
    from meshwright.choose import choose as search

    profile = _software(software)
    pins = dict(fixed) if fixed else None
    return search(_model(model), _cluster(cluster), workload, profile, objective=objective, top=top, fixed=pins)


def explain(
    model: Model | str,
    cluster: Cluster | str | Path,
    workload: Training,
    plan: Plan | None = None,
    software: Software | str | None = None,
    *,
    objective: str = "throughput",
    fixed: Mapping[str, Any] | None = None,
    flips: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Why the best plan is the best, or how far the given one is from it: what crosses which link, the bubble, what
    binds, the best of every other kind of layout and what it loses by. Model, cluster and software as for `estimate`.

    `flips` searches for what would change the choice (link speeds, ports, memory, batch, sequence) and, where nothing
    fits, for the smallest changes that make something fit; that takes many searches, and `progress` is told of each.
    """
    from meshwright.choose.explain import explain as found

    return found(
        _model(model), _cluster(cluster), workload, _software(software), plan,
        objective=objective, fixed=fixed, flips=flips, progress=progress,
    )  # fmt: skip


def scale(
    model: Model | str,
    cluster: Cluster | str | Path,
    workload: Training,
    software: Software | str | None = None,
    *,
    counts: Iterable[int] | None = None,
    batch_per_replica: int | None = None,
    threshold: float = 0.8,
    fixed: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Scaling:
    """The best plan on more and more accelerators of the cluster, and where more stop paying. Model, cluster and
    software as for `estimate`.

    The workload's global batch is kept, or grows as `batch_per_replica` × dp. `counts` are the numbers of accelerators
    to try; `threshold` is the efficiency below which the knee is said to be; `fixed` pins plan fields; `progress` is
    told what is being searched.
    """
    from meshwright.choose.scaling import scale as sweep

    return sweep(
        _model(model), _cluster(cluster), workload, _software(software),
        counts=counts, batch_per_replica=batch_per_replica, threshold=threshold,
        fixed=dict(fixed) if fixed else None, progress=progress,
    )  # fmt: skip


def validate(
    paths: str | Path | Iterable[str | Path],
    *,
    source: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Validation:
    """Predict the runs of one or several CSV files of measurements, and judge the predictions by what was measured:
    errors, choices between layouts, memory, and warnings about the data.

    `source` keeps to the rows of one source; `progress` is told what is being predicted. Raises InputError for a file
    that can't be read, and where no row can be predicted.
    """
    from meshwright.measure.predict import compare
    from meshwright.measure.report import judged

    files = [paths] if isinstance(paths, str | Path) else list(paths)
    return judged([each for file in files for each in compare(file, progress)], [str(file) for file in files], source)


def calibrate(
    paths: str | Path | Iterable[str | Path],
    cluster: Cluster | str | Path,
    software: Software | str | None = None,
    *,
    source: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Calibration:
    """Fit the constants of a cluster to runs that were measured on it, all or a part of it: matmul and memory
    efficiency, the efficiency of each link, the speed of the hosts. `save_cluster` writes the `cluster` of the result.

    Cluster as for `estimate`; `software` stands for what the rows say of their framework; `source` keeps to the rows of
    one source. Raises InputError for a file that can't be read, and where no run can be predicted on the cluster.
    """
    from meshwright.measure.calibration import calibrate as fitted

    files = [paths] if isinstance(paths, str | Path) else list(paths)
    profile = None if software is None else _software(software)
    return fitted(files, _cluster(cluster), profile, source, progress)


def _model(model: Model | str) -> Model:
    from meshwright.sources.models import load_model

    return load_model(model) if isinstance(model, str) else model


def _cluster(cluster: Cluster | str | Path) -> Cluster:
    from meshwright.sources.clusters import load_cluster

    return load_cluster(cluster) if isinstance(cluster, str | Path) else cluster


def _software(software: Software | str | None) -> Software:
    from meshwright.sources.software import load_software

    if software is None:
        return load_software()
    return load_software(software) if isinstance(software, str) else software


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("meshwright")
    elif name in _HOMES:
        value = getattr(import_module(f"meshwright.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'meshwright' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps the function `choose`: importing the room of that name would bind the room in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "choose" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def _in_a_notebook() -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        from meshwright.show.notebook import register

        register(shell)


_in_a_notebook()
