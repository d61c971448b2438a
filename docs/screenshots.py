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
from meshwright.show.terminal import show_ranking

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 100
PLAN = ("llama-3.1-70b", "32xdgx-a100-80g", mw.Training(global_batch=1024, seq_len=4096))
THEME = TerminalTheme(
    (22, 27, 34),
    (214, 220, 228),
    [(72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65), (88, 166, 255), (188, 140, 255), (57, 197, 207),
     (177, 186, 196)],
    [(125, 133, 144), (255, 161, 152), (126, 231, 135), (242, 204, 96), (121, 192, 255), (210, 168, 255), (86, 212, 221),
     (240, 246, 252)],
)  # fmt: skip
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
    console = Console(
        width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor", record=True, highlight=False
    )
    show_ranking(ranking, model, machines, job, software, 10, console)
    command = f"meshwright plan {name} --cluster {cluster} --global-batch {job.global_batch} --seq-len {job.seq_len}"
    return console.export_svg(title=f"$ {command}", theme=THEME, code_format=SVG, unique_id="plan")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "plan.svg").write_text(plan_picture(), encoding="utf-8")
    print("docs/images/plan.svg")


if __name__ == "__main__":
    main()
