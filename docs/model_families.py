"""The table of classes that the page on models shows: every row that the Hugging Face reader knows."""

from __future__ import annotations

from meshwright.sources.huggingface.encoder_decoder import PAIRS
from meshwright.sources.huggingface.encoders import ENCODERS
from meshwright.sources.huggingface.families import Family
from meshwright.sources.huggingface.table import TABLE
from meshwright.sources.huggingface.wrappers import WRAPPERS, Wrapper


def families_table() -> str:
    """Every row of the Hugging Face table: its class, and what its layers are made of."""
    rows = [
        [f"`{model_type}`", family.architecture, _mixing(family), _feeding(family)]
        for model_type, family in sorted(TABLE.items())
    ]
    wrappers = [
        [f"`{model_type}`", f"`{wrapper.text}`", _towers(wrapper)] for model_type, wrapper in sorted(WRAPPERS.items())
    ]
    encoders = [
        [f"`{model_type}`", f"{row.prefix}ForMaskedLM", f"counted: {row.unplanned}" if row.unplanned else "planned"]
        for model_type, row in sorted(ENCODERS.items())
    ]
    pairs = [[f"`{model_type}`", pair.architecture] for model_type, pair in sorted(PAIRS.items())]
    tables = [
        ("Decoders", ["model_type", "class", "tokens mix by", "MLP"], rows),
        ("Around a text stack: towers and projectors", ["model_type", "text stack", "tower"], wrappers),
        ("Encoders", ["model_type", "class, and others of its kind", ""], encoders),
        ("Encoder-decoders, counted only", ["model_type", "class"], pairs),
    ]
    return "\n\n".join(f"### {title}\n\n{_rows(titles, lines)}" for title, titles, lines in tables) + "\n"


def _towers(wrapper: Wrapper) -> str:
    own = f"`{wrapper.tower}`" + ("" if wrapper.fixed_tower else ", or another that the file names")
    return own + (f" and `{wrapper.audio}`" if wrapper.audio else "")


def _mixing(family: Family) -> str:
    words = ["latent attention" if family.latent else "attention"] if family.attention else []
    if family.indexer:
        words[0] += " with an indexer"
    if family.windows != "none" or family.mixer == "griffin":
        words[0] += ", windows"
    mixer = MIXER_WORDS.get("mamba2" if family.uneven == "single_blocks" else family.mixer)
    return " and ".join([*words, *([mixer] if mixer else [])])


def _feeding(family: Family) -> str:
    if family.mlp == "none":
        return "none"
    kind = "gated" if family.gated else "plain"
    if family.sparse == "none":
        return kind
    return f"{kind}, experts" + ("" if family.shared == "none" else " with shared ones")


def _rows(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


MIXER_WORDS = {
    "delta_rule": "gated delta rule",
    "kimi_delta_rule": "Kimi Delta Attention",
    "lightning": "lightning attention",
    "mamba": "Mamba",
    "mamba2": "Mamba-2",
    "short_convolution": "short convolution",
    "griffin": "gated linear recurrence",
    "rwkv": "RWKV-4",
}
