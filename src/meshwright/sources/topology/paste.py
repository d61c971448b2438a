"""A paste as plain lines: what mail, chats, terminals and editors put around a printout is taken off again."""

from __future__ import annotations

import html
import re
import sys
from collections import Counter
from pathlib import Path

from meshwright.spec.errors import InputError

MOST_BYTES = 1_000_000
STANDARD_INPUT = "-"
_ESCAPES = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|\x1b")
_ORPHANED_ESCAPES = re.compile(r"\[[0-9;]*m")
"""What is left of colours where the escape character itself was lost."""
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")
_QUOTED = re.compile(r"^\s*(?:[>|\"'`]+\s?)+")
_LAUNCHER = re.compile(r"\s*(\S*[:>\]])")
_RULES = re.compile("[|\u2502\u2503]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def read_paste(name: str) -> str:
    """The text of a file, or of standard input where the name is `-`. Raises InputError for what is no text."""
    where = "standard input" if name == STANDARD_INPUT else name
    try:
        if name == STANDARD_INPUT:
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            path = Path(name).expanduser()
            if path.exists() and not path.is_file() and not path.is_fifo():
                raise InputError("can't be read (not an ordinary file)", where)
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"can't be read ({reason})", where) from error
    if len(content) > MOST_BYTES:
        raise InputError(f"holds more than {MOST_BYTES:,} bytes", where, "pass the table only")
    return _decoded(content, where)


def _decoded(content: bytes, where: str) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-16" or b"\0" in content:
            raise InputError(f"is not text (byte {error.start})", where) from error
        text = content.decode("latin-1")
    if "\0" in text:
        raise InputError("is not text (it holds zero bytes)", where)
    return text


def clean_lines(text: str) -> list[str]:
    """Lines without quote marks, escape codes, table rules and odd blanks."""
    text = html.unescape(text)
    for written, meant in (("\\r", ""), ("\\n", "\n"), ("\\t", "\t")):  # from a log that quotes its text
        text = text.replace(written, meant)
    text = _ORPHANED_ESCAPES.sub("", _ESCAPES.sub("", text))
    text = _INVISIBLE.sub("", text)
    return _without_launcher([_clean(line) for line in re.split(r"\r\n|\r|\n|\u2028|\u2029|\x0b|\x0c", text)])


def _without_launcher(lines: list[str]) -> list[str]:
    """Without what mpirun, srun or pdsh write before each line of a process, the same on most lines."""
    prefixes = [match[1] for match in map(_LAUNCHER.match, lines) if match]
    prefix, count = Counter(prefixes).most_common(1)[0] if prefixes else ("", 0)
    if count < 2 or 2 * count <= sum(map(bool, lines)):
        return lines
    return [line.lstrip().removeprefix(prefix) for line in lines]


def _clean(line: str) -> str:
    line = _RULES.sub(" ", _QUOTED.sub("", line))
    line = _CONTROL.sub("", line.replace("\t", "    "))
    return "".join(" " if character.isspace() else character for character in line).rstrip()
