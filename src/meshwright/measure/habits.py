"""The software profile of a row: the framework's, of its year, with what the row says of kernels and switches."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from meshwright.measure.cells import words, year
from meshwright.measure.comparison import Row
from meshwright.sources.attention_kernels import load_attention_kernel
from meshwright.sources.catalog import entry_names, load_entry
from meshwright.sources.software import DEFAULT_SOFTWARE, load_software
from meshwright.spec.software import Software


def software_of(row: Row, given: Software | None = None) -> tuple[Software, tuple[str, ...]]:
    """(the profile, what was assumed). A `given` profile takes the place of the one that the row names."""
    if given is not None:
        return _switched(given, row), ()
    profile, assumed = profile_of(words(row.cells, "framework", "software"), year(row.cells))
    return _switched(profile, row), assumed


@cache
def profile_of(framework: str, when: int | None) -> tuple[Software, tuple[str, ...]]:
    """(the catalog's profile of a framework, the newest that isn't younger than the measurement; what was assumed)."""
    if framework in entry_names("software"):
        return load_software(framework), ()
    known = [load_software(name) for name in entry_names("software")]
    named = {profile.name: _named_at(profile, framework) for profile in known}
    first = min(named.values())
    if first == _NOWHERE:
        return load_software(DEFAULT_SOFTWARE), (f"software={DEFAULT_SOFTWARE}",)
    same = sorted((profile for profile in known if named[profile.name] == first), key=lambda profile: profile.year)
    not_younger = [profile for profile in same if when is None or profile.year <= when]
    return (not_younger[-1] if not_younger else same[0]), ()


_NOWHERE = (10**6, 0)


def _named_at(profile: Software, framework: str) -> tuple[int, int]:
    """(where the text first names the profile's framework, minus the length of the name): the first framework that is
    named counts, and of names that start there the longest."""
    plain = re.sub(r"[\s_]+", " ", framework)
    found = [
        (match.start(), -len(word))
        for word in profile.frameworks
        if (match := re.search(rf"\b{re.escape(word)}", plain))
    ]
    return min(found, default=_NOWHERE)


def _switched(profile: Software, row: Row) -> Software:
    """The profile with the row's own attention kernel, overlap and fp8 recipe."""
    changes: dict[str, Any] = {}
    kernel = words(row.cells, "attn_kernel")
    attention = _attention(kernel, profile)
    if attention and attention != profile.attention.name:
        changes["attention"] = load_attention_kernel(attention)
    extra, dtype = words(row.cells, "extra"), words(row.cells, "dtype", "extra")
    if profile.eager_elementwise_factor and not re.search(r"torch\.?[\s_-]?compile|\bcompiled?\b", extra):
        changes["elementwise_factor"] = profile.eager_elementwise_factor
    if re.search(r"async\s*-?_?tp", extra) and not profile.tensor_overlap:
        changes["tensor_overlap"] = _switches()["async_tensor_overlap"]
    if "rowwise" in dtype:
        changes["fp8_cast_bytes_per_element"] = _switches()["rowwise_cast_factor"] * profile.fp8_cast_bytes_per_element
    if re.search(r"(fp8|float8) all-?gather", dtype):
        changes["parameter_gather_bytes"] = 1.0
    return replace(profile, **changes) if changes else profile


@cache
def _switches() -> dict[str, Any]:
    """The catalog's numbers for what a row can switch on; read once, since there can be thousands of rows."""
    return load_entry("habits", "switches")


def _attention(kernel: str, profile: Software) -> str:
    """The catalog's attention kernel that the row names; empty where it names none, or the profile's kind of flash."""
    rules: tuple[tuple[str, Callable[[], str]], ...] = (
        (r"unfused|non-flash|fused softmax|eager|math", lambda: "unfused"),
        (r"cudnn|flash\w*[ -]*(attention)?[ -]*[34]\b|\bfa[34]\b", lambda: "cudnn"),
        (r"triton|flash|sdpa|memory.efficient|xformers", lambda: "" if profile.attention.efficiency else "flash2"),
    )
    return next((name() for pattern, name in rules if re.search(pattern, kernel)), "")
