"""Draw the pictures that the README shows, from the program itself.

    python docs/screenshots.py

Each is what the terminal shows, as an SVG without fonts from elsewhere.
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

import meshwright as mw
from meshwright.show.explanation import show_explanation
from meshwright.show.scaling_svg import scaling_svg
from meshwright.show.terminal import show_ranking

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 100
PLAN = ("llama-3.1-70b", "32xdgx-a100-80g", mw.Training(global_batch=1024, seq_len=4096))
EXPLAIN = ("llama-3.1-8b", "1xa100-pcie-8", mw.Training(global_batch=128, seq_len=4096))
SCALE = ("llama-2-7b", "64xdgx-a100-80g", mw.Training(global_batch=64, seq_len=4096))
_NORMAL = ("484f58", "ff7b72", "56d364", "e3b341", "58a6ff", "bc8cff", "39c5cf", "b1bac4")
_BRIGHT = ("7d8590", "ffa198", "7ee787", "f2cc60", "79c0ff", "d2a8ff", "56d4dd", "f0f6fc")


def _rgb(text: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(text)
    return red, green, blue


THEME = TerminalTheme(_rgb("161b22"), _rgb("d6dce4"), list(map(_rgb, _NORMAL)), list(map(_rgb, _BRIGHT)))
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
    font-variant-east-asian: full-width;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""


def plan_picture() -> str:
    """`meshwright plan` for a 70-billion-parameter model on 256 accelerators."""
    name, cluster, job = PLAN
    model, machines, software = mw.load_model(name), mw.load_cluster(cluster), mw.load_software()
    ranking = mw.choose(model, machines, job, software)
    console = _console()
    assert ranking.best is not None
    show_ranking(ranking, ranking.best, 10, console)
    return _drawn(console, "plan", name, cluster, job)


def explain_picture() -> str:
    """`meshwright explain` for an 8-billion-parameter model on one server without NVLink."""
    name, cluster, job = EXPLAIN
    said = mw.explain(name, cluster, job)
    console = _console()
    assert said.estimate is not None
    show_explanation(said, said.estimate, console)
    return _drawn(console, "explain", name, cluster, job)


def scale_picture() -> str:
    """`meshwright scale` for a 7-billion-parameter model at a fixed batch: the file that --svg writes."""
    name, cluster, job = SCALE
    return scaling_svg(mw.scale(name, cluster, job))


def _console() -> Console:
    return Console(
        width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor", record=True, highlight=False
    )


def _drawn(console: Console, command: str, name: str, cluster: str, job: mw.Training) -> str:
    options = f"--cluster {cluster} --global-batch {job.global_batch} --seq-len {job.seq_len}"
    title = f"$ meshwright {command} {name} {options}"
    return console.export_svg(title=title, theme=THEME, code_format=SVG, unique_id=command)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, picture in (("plan", plan_picture), ("explain", explain_picture), ("scale", scale_picture)):
        (IMAGES / f"{name}.svg").write_text(picture(), encoding="utf-8")
        print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()
