"""Changes to single keys of a catalog entry's text: every other line, comment and order stays as it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

WIDTH = 120


def with_number(text: str, key: str, value: float, before: str) -> str:
    """The text with `key: value`, in its place or, where the key is new, in front of the key `before`."""
    line = f"{key}: {shown(value)}"
    pattern = re.compile(rf"^{re.escape(key)}: [^#\n]*?(?=\s*(#|$))", re.MULTILINE)
    return pattern.sub(line, text, count=1) if pattern.search(text) else _inserted(text, line, before)


def with_numbers(text: str, key: str, values: Mapping[str, float], before: str) -> str:
    """The text with these entries of the mapping `key`, one a line; other entries of it stay."""
    block = re.search(rf"^{re.escape(key)}:[^\n]*\n(?:[ ]+[^\n]*\n)*", text, re.MULTILINE)
    if block is None:
        return _inserted(
            text, "\n".join([f"{key}:", *(f"  {_name(name)}: {shown(values[name])}" for name in values)]), before
        )
    lines = block.group()
    for name, value in values.items():
        entry = re.compile(rf"^  {re.escape(_name(name))}: [^#\n]*?(?=\s*(#|$))", re.MULTILINE)
        line = f"  {_name(name)}: {shown(value)}"
        lines = entry.sub(line, lines, count=1) if entry.search(lines) else f"{lines}{line}\n"
    return text[: block.start()] + lines + text[block.end() :]


def with_prose(text: str, key: str, prose: str, before: str) -> str:
    """The text with `prose`, folded, under `key`."""
    folded = textwrap.wrap(
        prose, WIDTH - 2, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )
    lines = "\n".join([f"{key}: >-", *folded])
    block = re.search(rf"^{re.escape(key)}:[^\n]*\n(?:[ ]+[^\n]*\n)*", text, re.MULTILINE)
    return text[: block.start()] + lines + "\n" + text[block.end() :] if block else _inserted(text, lines, before)


def shown(value: float) -> str:
    """A fitted figure with three digits behind the point, fewer where they are zero, one at least."""
    short = f"{value:.3f}".rstrip("0")
    return f"{short}0" if short.endswith(".") else short


def _inserted(text: str, lines: str, before: str) -> str:
    place = re.search(rf"^{re.escape(before)}:", text, re.MULTILINE)
    end = text if text.endswith("\n") else f"{text}\n"
    return f"{text[: place.start()]}{lines}\n{text[place.start() :]}" if place else f"{end}{lines}\n"


def _name(name: str) -> str:
    return name or "''"
