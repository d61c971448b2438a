"""Run the commands that the README shows and put what they print in their places.

    python docs/refresh_readme.py [FILE…]       README.md by default

A place is a comment that names the command, followed by a fenced block; the block's content is replaced:

    <!-- output: meshwright catalog models -->
    ```text
    …
    ```

Only `meshwright` commands are run, in the repository's root, at a fixed width and without colours. An answer of "no"
(exit code 1) is shown like any other; input that cannot be understood (exit code 2) stops the refresh.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(
    r"^(?P<comment><!-- output: (?P<command>.+?) -->\n)(?P<fence>```)(?P<language>\w*)\n.*?^```$",
    re.MULTILINE | re.DOTALL,
)
ANSWERED = (0, 1)


def refresh(text: str) -> str:
    """The text with the content of every place replaced by what its command prints now."""
    return PLACE.sub(_replacement, text)


def _replacement(place: re.Match[str]) -> str:
    command = place["command"]
    return f"{place['comment']}```{place['language']}\n$ {command}\n{output_of(command)}\n```"


def output_of(command: str) -> str:
    """What the command prints, at 110 columns and without colours or trailing blanks."""
    program, *arguments = shlex.split(command)
    if program != "meshwright":
        raise SystemExit(f"{command!r}: only meshwright commands can be shown here, not {program!r}")
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}
    installed = Path(sys.executable).parent / program  # beside the interpreter that runs this, whatever the PATH says
    done = subprocess.run([installed, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode not in ANSWERED:
        raise SystemExit(f"{command!r} left with exit code {done.returncode}:\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def main() -> None:
    for path in [Path(name) for name in sys.argv[1:]] or [ROOT / "README.md"]:
        before = path.read_text(encoding="utf-8")
        after = refresh(before)
        path.write_text(after, encoding="utf-8")
        print(f"{path.name}: {len(PLACE.findall(before))} commands, {'changed' if after != before else 'unchanged'}")


if __name__ == "__main__":
    main()
