"""Collective libraries from the catalog and from cluster files."""

from __future__ import annotations

from typing import Any

from meshwright.sources.catalog import CATALOG, read_yaml
from meshwright.sources.fields import Fields
from meshwright.spec.collectives import CollectiveLibrary, Protocol
from meshwright.spec.errors import UnknownName

_FOLDER = CATALOG / "collectives"
_BASES = ("in_switch_base_us", "all_to_all_base_us", "send_base_us")
_SHARES = ("tree_bandwidth_share", "in_switch_bandwidth_share")
KEYS = ("name", "source", "residual", "protocols", *_SHARES, *_BASES)
PROTOCOL_KEYS = ("name", "bandwidth_share", "hop_factor", "network_hop_factor", "ring_base_us", "tree_base_us")


def library_names() -> tuple[str, ...]:
    """Names of the libraries in the catalog."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load_library(name: str, where: str = "") -> CollectiveLibrary:
    """The catalog's library `name` (`nccl`)."""
    if name not in library_names():
        raise UnknownName("collective library", name, library_names(), where)
    path = _FOLDER / f"{name}.yaml"
    return library_from(Fields(str(path), read_yaml(path), KEYS))


def library_from(fields: Fields) -> CollectiveLibrary:
    """The library that a file writes out."""
    return CollectiveLibrary(
        name=fields.text("name"),
        protocols=tuple(
            Protocol(
                name=protocol.text("name"),
                bandwidth_share=protocol.share("bandwidth_share"),
                hop_factor=protocol.positive("hop_factor"),
                ring_base_s=_seconds(protocol, "ring_base_us"),
                tree_base_s=_seconds(protocol, "tree_base_us"),
                network_hop_factor=protocol.positive("network_hop_factor", 0.0),
            )
            for protocol in fields.items("protocols", PROTOCOL_KEYS)
        ),
        **{key: fields.not_negative(key, 0.0, most=1.0) for key in _SHARES},
        **{key.replace("_us", "_s"): _seconds(fields, key) for key in _BASES},
        source=" ".join(filter(None, (fields.text("source", ""), fields.text("residual", "")))),
    )


def library_content(library: CollectiveLibrary) -> dict[str, Any]:
    """The library as a cluster file holds it."""
    return {
        "name": library.name,
        "protocols": [
            {
                "name": protocol.name,
                "bandwidth_share": protocol.bandwidth_share,
                "hop_factor": protocol.hop_factor,
                **({"network_hop_factor": protocol.network_hop_factor} if protocol.network_hop_factor else {}),
                "ring_base_us": _microseconds(protocol.ring_base_s),
                "tree_base_us": _microseconds(protocol.tree_base_s),
            }
            for protocol in library.protocols
        ],
        **{key: getattr(library, key) for key in _SHARES},
        **{key: _microseconds(getattr(library, key.replace("_us", "_s"))) for key in _BASES},
        "source": library.source,
    }


def _seconds(fields: Fields, key: str) -> float:
    return fields.not_negative(key, 0.0, most=1e9) / 1e6


def _microseconds(seconds: float) -> float:
    return seconds * 1e6
