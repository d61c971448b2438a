"""Accelerators from the catalog and from descriptions inside cluster files.

An entry, and an `accelerator:` written out in a cluster file, has these keys (SI units, dense peaks):

    name: my-card
    memory_gib: 79.15                # or memory_bytes: what the driver shows, not the nameplate
    memory_bytes_per_s: 2039e9
    peak_flops_per_s: {bf16: 312e12, fp32: 19.5e12}
    matmul_efficiency: {bf16: 0.85}  # share of the peak that large matmuls reach one at a time; or
    inherits: a100-80g               # the catalog entry whose shares, and share kept, stand in
    sustained: 0.84                  # optional: share of it that they keep through a training step, 1 where left out
    memory_efficiency: 0.85          # optional, as is the rest: host_bytes_per_s, title, vendor, family, year, library,
                                     # source, notes, and what a pasted topology needs:
    links: 12                        # NVLink or XGMI links
    link_bytes_per_s: 25e9           # of one, per direction
    peer_to_peer: true               # false: the driver copies between cards through host memory
    waves: …                         # what a matmul's last wave of tiles loses (sources/waves.py)
"""

from __future__ import annotations

from typing import Any

from meshwright.sources import checks
from meshwright.sources.catalog import CATALOG, entry_names, load_entry
from meshwright.sources.fields import Fields
from meshwright.sources.waves import read_waves, waves_content
from meshwright.spec.cluster import Accelerator
from meshwright.spec.errors import InputError

DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
KEYS = (
    "name", "title", "vendor", "family", "year", "memory_gib", "memory_bytes", "memory_bytes_per_s",
    "memory_efficiency", "peak_flops_per_s", "matmul_efficiency", "sustained", "host_bytes_per_s", "inherits",
    "library", "source", "measured", "fitted", "notes", "links", "link_bytes_per_s", "peer_to_peer", "waves",
)  # fmt: skip
GIB = 2**30
_MOST_ANCESTORS = 4
_MOST_LINKS = 1024


def load_accelerator(name: str) -> Accelerator:
    """The catalog's accelerator `name` (`h100`). Raises UnknownName, with near names, where there is none."""
    return _from_entry(name, ())


def accelerator_from(fields: Fields) -> Accelerator:
    """The accelerator that a file writes out. Raises InputError with the key that is wrong."""
    return _build(fields, (fields.text("name"),))


def accelerator_content(accelerator: Accelerator) -> dict[str, Any]:
    """The accelerator as a cluster file holds it; `accelerator_from` reads it back unchanged."""
    content: dict[str, Any] = {
        "name": accelerator.name,
        "memory_bytes": accelerator.memory_bytes,
        "memory_bytes_per_s": accelerator.memory_bytes_per_s,
        "memory_efficiency": accelerator.memory_efficiency,
        "peak_flops_per_s": dict(accelerator.peak_flops_per_s),
        "matmul_efficiency": dict(accelerator.matmul_efficiency),
        "sustained": accelerator.sustained,
    }
    optional = {
        "host_bytes_per_s": accelerator.host_bytes_per_s,
        "title": accelerator.title,
        "vendor": accelerator.vendor,
        "family": accelerator.family,
        "year": accelerator.year,
        "inherits": accelerator.inherits,
        "library": accelerator.library,
        "source": accelerator.source,
        "measured": accelerator.measured,
        "notes": list(accelerator.notes),
        "links": accelerator.links,
        "link_bytes_per_s": accelerator.link_bytes_per_s,
    }
    if accelerator.waves:
        content["waves"] = waves_content(accelerator.waves)
    if not accelerator.peer_to_peer:
        content["peer_to_peer"] = False
    return content | {key: value for key, value in optional.items() if value}


def _from_entry(name: str, descendants: tuple[str, ...]) -> Accelerator:
    content = load_entry("accelerators", name)
    where = str(CATALOG / "accelerators" / f"{name.strip().lower()}.yaml")
    return _build(Fields(where, content, KEYS), (*descendants, name))


def _build(fields: Fields, descendants: tuple[str, ...]) -> Accelerator:
    peaks = fields.numbers("peak_flops_per_s", DTYPES)
    if not peaks:
        raise InputError(
            f"{fields.key('peak_flops_per_s')} is missing: it must be a mapping such as bf16: 312e12", fields.where
        )
    inherits = fields.text("inherits", "")
    shares = fields.numbers("matmul_efficiency", DTYPES, most=1.0)
    sustained = fields.share("sustained", 1.0)
    relative = None
    memory_efficiency = Accelerator.memory_efficiency
    if inherits and len(descendants) <= _MOST_ANCESTORS:
        relative = _relative(fields, inherits, descendants)
        memory_efficiency = relative.memory_efficiency
        shares, sustained = _inherited(fields, relative, peaks, shares)
    elif not shares:
        raise InputError(
            f"{fields.key('matmul_efficiency')} is missing: it must be a mapping such as bf16: 0.7",
            fields.where,
            "or name a relative of the catalog under inherits",
        )
    return Accelerator(
        name=fields.text("name"),
        peak_flops_per_s=peaks,
        memory_bytes=_memory_bytes(fields),
        memory_bytes_per_s=fields.positive("memory_bytes_per_s"),
        matmul_efficiency=shares,
        sustained=sustained,
        memory_efficiency=fields.share("memory_efficiency", memory_efficiency),
        host_bytes_per_s=fields.not_negative("host_bytes_per_s", 0.0),
        title=fields.text("title", ""),
        vendor=fields.text("vendor", ""),
        family=fields.text("family", ""),
        inherits=inherits,
        year=fields.whole("year", 0, 1980, 2100),
        source=fields.text("source", ""),
        measured=fields.text("measured", ""),
        notes=fields.texts("notes"),
        library=fields.text("library", ""),
        links=fields.whole("links", 0, 0, _MOST_LINKS),
        link_bytes_per_s=fields.not_negative("link_bytes_per_s", 0.0),
        peer_to_peer=fields.flag("peer_to_peer", True),
        waves=read_waves(fields, relative.waves if relative and relative.family == fields.text("family", "") else None),
    )


def _relative(fields: Fields, name: str, descendants: tuple[str, ...]) -> Accelerator:
    if name not in entry_names("accelerators"):
        raise checks.wrong(
            fields.where, fields.key("inherits"), name, f"one of {', '.join(entry_names('accelerators'))}"
        )
    return _from_entry(name, descendants)


def _inherited(
    fields: Fields, relative: Accelerator, peaks: dict[str, float], own: dict[str, float]
) -> tuple[dict[str, float], float]:
    """(matmul shares, share sustained) of an heir: the relative's share for every dtype, its share in 16 bits where it
    has no such unit, and what the heir says itself. Own shares without a `sustained` beside them are what training
    reaches."""
    shares = relative.matmul_efficiency
    half = shares.get("bf16", shares.get("fp16", min(shares.values())))
    lent = {dtype: shares.get(dtype, half) for dtype in peaks}
    if "sustained" in fields:
        return lent | own, fields.share("sustained")
    if not own:
        return lent, relative.sustained
    return {dtype: share * relative.sustained for dtype, share in lent.items()} | own, 1.0


def _memory_bytes(fields: Fields) -> float:
    if "memory_bytes" in fields:
        if "memory_gib" in fields:
            raise InputError(f"{fields.key('memory_gib')} and memory_bytes are both given", fields.where, "keep one")
        return fields.positive("memory_bytes", least=2**20, most=2**60)
    return fields.positive("memory_gib", least=2**-10, most=2**30) * GIB
