"""An explanation as JSON and as text: all that they show is a fact of the explanation."""

from __future__ import annotations

import io
import json
import re

from rich.console import Console

import meshwright as mw
from meshwright.show.document import to_json
from meshwright.show.explanation import explanation_view
from meshwright.show.explanation_document import explanation_document

JOB = ("llama-3.1-8b", "1xa100-pcie-8", mw.Training(global_batch=128, seq_len=4096))
SAID = mw.explain(*JOB)


def text(width: int = 120) -> str:
    assert SAID.estimate is not None
    console = Console(width=width, file=io.StringIO(), highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(explanation_view(SAID, SAID.estimate, width))
    return captured.get()


def test_the_document_is_plain_json_with_every_fact() -> None:
    document = json.loads(to_json(explanation_document(SAID)))
    assert [each["name"] for each in document["families"]] == [each.name for each in SAID.families]
    assert document["flips"] is not None
    assert SAID.flips is not None
    for shown, flip in zip(document["flips"], SAID.flips, strict=True):
        assert shown["keeps"]["value"] == flip.keeps.value
        assert (shown["flips"] is None) == (flip.flips is None)
    for shown, rung in zip(document["memory"], SAID.memory, strict=True):
        parts = {name: size for name, size in shown["memory_bytes"].items() if name not in ("total", "capacity")}
        assert abs(sum(parts.values()) - rung.total_bytes) < 1
    assert document["text"] == list(SAID.text)


def test_each_family_and_each_flip_has_a_row() -> None:
    shown = text()
    for family in SAID.families:
        assert family.title in shown
    assert SAID.flips is not None
    for flip in SAID.flips:
        assert f"{flip.title} {flip.direction}" in shown


def test_the_gap_that_is_shown_is_that_of_the_step_times() -> None:
    assert SAID.best is not None
    tensor = next(each for each in SAID.families if each.name == "tensor")
    assert tensor.estimate is not None
    row = next(line for line in text(140).splitlines() if line.strip().startswith("pure tensor"))
    shown = re.search(r"\+(\d+)%", row)
    assert shown is not None
    gap = tensor.estimate.step_time_s / SAID.best.step_time_s - 1
    assert abs(float(shown[1]) / 100 - gap) < 0.006


def test_printed_it_is_one_sentence_a_line() -> None:
    lines = str(SAID).splitlines()
    assert lines == list(SAID.text)
    assert all(line.endswith(".") for line in lines)
    assert "best plan" in lines[0]


def test_a_ranking_explains_itself_with_the_same_words() -> None:
    ranking = mw.choose(*JOB)
    said = ranking.explain()
    assert said.best == ranking.best
    assert said.flips is None
    assert list(said.text) == [line for line in SAID.text if line in said.text]
