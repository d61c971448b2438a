"""The public API: what `import meshwright as mw` offers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import meshwright as mw


def test_every_name_of_the_public_api_resolves() -> None:
    assert {name for name in mw.__all__ if getattr(mw, name) is not None} == set(mw.__all__)
    assert set(mw.__all__) <= set(dir(mw))
    assert sorted(mw.__all__) == mw.__all__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        mw.nonsense  # noqa: B018


def test_importing_the_room_of_the_same_name_keeps_the_function() -> None:
    code = "import meshwright.choose.space, meshwright as mw; assert callable(mw.choose), mw.choose"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_names_and_objects_are_taken_alike() -> None:
    job = mw.Training(global_batch=64, seq_len=1024)
    named = mw.estimate("gpt2", "1xdgx-a100-80g", job, mw.Plan(dp=8), "current")
    loaded = mw.estimate(mw.load_model("gpt2"), mw.load_cluster("1xdgx-a100-80g"), job, mw.Plan(dp=8))
    assert named == loaded
    best = mw.choose("gpt2", "1xdgx-a100-80g", job, top=1, fixed={"dp": 8, "tp": 1}).best
    assert best is not None
    assert best.plan.dp == 8


def test_an_unknown_name_is_an_input_error() -> None:
    with pytest.raises(mw.InputError, match="did you mean gpt2"):
        mw.choose("gtp2", "1xdgx-a100-80g", mw.Training(global_batch=64, seq_len=1024))


def test_a_plan_is_saved_and_loaded(tmp_path: Path) -> None:
    estimate = mw.estimate("gpt2", "1xdgx-a100-80g", mw.Training(global_batch=64, seq_len=1024), mw.Plan(dp=8))
    mw.save_plan(estimate, tmp_path / "plan.yaml")
    assert mw.load_plan(tmp_path / "plan.yaml").plan == estimate.plan


def test_answers_show_themselves_in_a_notebook(repository: Path) -> None:
    from meshwright.show.notebook import register

    shown: dict[tuple[str, str], Any] = {}

    def formatter(kind: str) -> SimpleNamespace:
        return SimpleNamespace(
            for_type_by_name=lambda module, name, function: shown.__setitem__((kind, name), (module, function))
        )

    formatters = {kind: formatter(kind) for kind in ("text/html", "text/plain")}
    register(SimpleNamespace(display_formatter=SimpleNamespace(formatters=formatters)))

    job = mw.Training(global_batch=64, seq_len=1024)
    ranking = mw.choose("gpt2", "1xdgx-a100-80g", job, fixed={"tp": 1}, top=2)
    assert ranking.best is not None
    answers = {
        "Estimate": (ranking.best, "Time of a step"),
        "Ranking": (ranking, "Time of a step"),
        "Explanation": (ranking.explain(), "What crosses which link"),
        "Scaling": (mw.scale("gpt2", "1xdgx-a100-80g", job), "Where more stops paying"),
        "Validation": (mw.validate(repository / "docs" / "runs.csv"), "predicted against measured"),
    }
    for name, (answer, title) in answers.items():
        module, html = shown["text/html", name]
        assert module == type(answer).__module__
        assert html(answer).startswith("<pre")
        assert title in html(answer)
        written: list[str] = []
        shown["text/plain", name][1](answer, SimpleNamespace(text=written.append), False)
        assert title in written[0]
