"""Which catalog entry a Hub id means. When entries have changed, `python -m meshwright.sources.hub` makes it anew."""

from __future__ import annotations

from functools import cache

from meshwright.sources.catalog import CATALOG, entry_names, load_entry

INDEX = CATALOG / "hub_ids.tsv"
"""One line per Hub id: the id as its owner writes it, a tab, the name of the entry. Ids are looked up in any case."""


def catalog_name(hub_id: str) -> str | None:
    """The entry that describes a Hub id, or None."""
    found = _index().get(hub_id.strip().lower())
    return found[1] if found else None


def hub_names() -> list[str]:
    """All Hub ids that the catalog knows, as their owners write them."""
    return [hub_id for hub_id, _ in _index().values()]


def current_index() -> str:
    """The text of the index as the entries have it now. Opens every entry."""
    ids = {name: load_entry("models", name).get("hub") or () for name in entry_names("models")}
    return "".join(sorted((f"{hub_id}\t{name}\n" for name in ids for hub_id in ids[name]), key=str.lower))


@cache
def _index() -> dict[str, tuple[str, str]]:
    lines = INDEX.read_text(encoding="utf-8").splitlines() if INDEX.is_file() else []
    pairs = [line.split("\t") for line in lines if "\t" in line]
    return {hub_id.lower(): (hub_id, name) for hub_id, name in pairs}


if __name__ == "__main__":
    INDEX.write_text(current_index(), encoding="utf-8")
