"""Write accuracy.md, its pictures and the README's block from a folder of measurements.

    python docs/accuracy.py FOLDER

FOLDER holds training.csv and memory.csv; see accuracy_page/ for what is made of them. It takes some minutes. The page
is committed, so that the documentation can be built without the measurements.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from accuracy_page.ablation import ablate_all
from accuracy_page.evidence import ABOUT, MEMORY, collect
from accuracy_page.page import Page, readme_block

from meshwright.measure.catalog_fit import TRAINING
from meshwright.sources.whole_files import write_whole
from meshwright.spec.errors import InputError

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
PLACE = re.compile(r"(?<=<!-- accuracy -->\n).*?(?=<!-- /accuracy -->)", re.DOTALL)
"""The README's block."""


def write(page: Page) -> list[Path]:
    """Page, pictures and block; the files that changed."""
    from accuracy_page.pictures import pictures

    drawn = pictures(page.evidence.left_out)
    texts = {DOCS / "images" / name: text for name, text in drawn.items()}
    texts[DOCS / "accuracy.md"] = page.text()
    texts[README] = with_block(README.read_text(encoding="utf-8"), readme_block(page))
    changed = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        write_whole(path, texts[path])
    return changed


def with_block(readme: str, block: str) -> str:
    """The README with this text between its markers. Raises ValueError where they are missing."""
    if not PLACE.search(readme):
        raise ValueError("the README has no <!-- accuracy --> … <!-- /accuracy -->")
    return PLACE.sub(lambda _: f"{block}\n", readme, count=1)


def missing(folder: Path) -> list[str]:
    """Files that are needed and not there."""
    return [name for name in (TRAINING, MEMORY, ABOUT) if not (folder / name).is_file()]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python docs/accuracy.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    lacking = missing(folder)
    if lacking:
        print(f"error: {folder} has no {', no '.join(lacking)}; name the folder: make accuracy DATA=…", file=sys.stderr)
        return 2
    start = time.monotonic()

    def progress(text: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        evidence = collect(folder, progress)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    ablations = ablate_all(evidence.fit, progress, os.cpu_count() or 1)
    progress("drawing and writing")
    changed = write(Page(evidence, ablations))
    print(f"rewritten: {', '.join(path.name for path in changed)}" if changed else "nothing has changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
