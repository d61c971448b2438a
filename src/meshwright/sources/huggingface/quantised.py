"""The block of a config that says how its checkpoint stores the weights, as `StoredWeights`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from meshwright.sources import checks
from meshwright.spec.errors import InputError
from meshwright.spec.stored import StoredWeights

BLOCKS = ("quantization_config", "compression_config", "quantization")
MOST_BITS = 16


def stored_weights(values: Mapping[str, Any], where: str) -> tuple[StoredWeights | None, tuple[str, ...]]:
    """How the weights are stored (None: plainly, or in a way that is not known here), and a note where they are packed.

    Raises InputError for a block that contradicts itself.
    """
    name = next((name for name in BLOCKS if values.get(name) is not None), "")
    if not name:
        return None, ()
    block = checks.mapping(where, name, values[name])
    given = block.get("quant_method") or block.get("quant_algo") or ("bitsandbytes" if _is_bnb(block) else "")
    method = checks.text(where, f"{name}.quant_method", given).lower()
    read = _Block(block, where, name)
    # experts of another format than the rest: no one rule holds for all
    mixed = (block.get("expert_dtype") or values.get("expert_dtype")) is not None
    rule = None if mixed else RULES.get(method)
    stored = rule(read) if rule else None
    if stored is None:
        return None, (
            f"the stored weights are quantised ({method or 'unnamed method'}); parameters are counted unpacked",
        )
    what = "expert weights" if stored.covers == "experts" else "weights"
    size = f"{stored.bits_per_weight:.4g} bits each with their scales"
    return stored, (f"{what} are stored as {stored.format} ({size}); they are counted unpacked, and trained in bf16",)


class _Block:
    def __init__(self, block: Mapping[str, Any], where: str, name: str) -> None:
        self.block, self.where, self.name = block, where, name

    def size(self, key: str, default: int, least: int = 1, most: int = checks.MOST) -> int:
        value = self.block.get(key)
        return default if value is None else checks.whole(self.where, f"{self.name}.{key}", value, least, most)

    def flag(self, key: str) -> bool:
        value = self.block.get(key)
        return False if value is None else checks.flag(self.where, f"{self.name}.{key}", value)

    def inside(self, key: str) -> _Block:
        value = self.block.get(key)
        name = f"{self.name}.{key}"
        return _Block({} if value is None else checks.mapping(self.where, name, value), self.where, name)


def _is_bnb(block: Mapping[str, Any]) -> bool:
    return "load_in_4bit" in block or "load_in_8bit" in block


def _four_bit(read: _Block) -> StoredWeights:
    """GPTQ and AWQ: a 16-bit scale and a zero point of as many bits as a weight, for each group (-1: a row)."""
    bits, group = read.size("bits", 4, 2, 8), read.size("group_size", 128, -1)
    if group == 0:
        raise checks.wrong(read.where, f"{read.name}.group_size", group, "-1 or at least 1", 128)
    method = str(read.block.get("quant_method"))
    return StoredWeights(
        f"{method} w{bits}g{group}" if group > 0 else f"{method} w{bits}", bits, max(group, 0), 16 + bits
    )


def _fp8(read: _Block) -> StoredWeights:
    """One 32-bit scale per block (8-bit where the scales are powers of two), or per tensor."""
    sides = read.block.get("weight_block_size")
    if sides is None:
        return StoredWeights("fp8", 8)
    name = f"{read.name}.weight_block_size"
    if len(checks.listed(read.where, name, sides)) != 2:
        raise checks.wrong(read.where, name, sides, "a list of two sides", [128, 128])
    high, wide = (checks.whole(read.where, name, side) for side in sides)
    scale = 8 if read.block.get("scale_fmt") == "ue8m0" else 32
    return StoredWeights(f"fp8 in blocks of {high}x{wide}", 8, high * wide, scale)


def _mxfp4(read: _Block) -> StoredWeights:
    """OCP microscaling: 32 weights share an 8-bit exponent; gpt-oss stores its experts so."""
    return StoredWeights("mxfp4", 4, 32, 8, "experts")


def _nvfp4(read: _Block) -> StoredWeights:
    """16 weights share an fp8 scale."""
    return StoredWeights("nvfp4", 4, read.size("group_size", 16), 8)


def _modelopt(read: _Block) -> StoredWeights | None:
    algorithm = str(read.block.get("quant_algo") or read.inside("quantization").block.get("quant_algo") or "").lower()
    return {"nvfp4": _nvfp4, "fp8": _fp8}[algorithm](read) if algorithm in ("nvfp4", "fp8") else None


def _bitsandbytes(read: _Block) -> StoredWeights:
    """NF4: a 32-bit scale per 64 weights, itself in 8 bits under double quantisation (Dettmers et al. 2023, arXiv
    2305.14314, section 3)."""
    four, eight = read.flag("load_in_4bit"), read.flag("load_in_8bit")
    if four == eight:
        problem = "load_in_4bit and load_in_8bit are both on" if four else "neither load_in_4bit nor load_in_8bit is on"
        raise InputError(f"{read.name}: {problem}", read.where, "keep one of them true")
    if eight:
        return StoredWeights("bitsandbytes int8", 8)
    return StoredWeights("bitsandbytes nf4", 4, 64, 8 + 32 / 256 if read.flag("bnb_4bit_use_double_quant") else 32)


def _compressed_tensors(read: _Block) -> StoredWeights | None:
    """The weights of the one group of settings; several groups store different matrices differently."""
    groups = read.inside("config_groups")
    if len(groups.block) != 1:
        return None
    weights = groups.inside(next(iter(groups.block))).inside("weights")
    bits, group = weights.size("num_bits", 8, 1, MOST_BITS), weights.size("group_size", 0, -1)
    kind = {"float": "fp", "int": "int"}.get(str(weights.block.get("type", "int")), "int")
    scale = 8 if (kind, bits) == ("fp", 4) else 16
    name = "nvfp4" if (kind, bits, group) == ("fp", 4, 16) else f"{kind}{bits}"
    return StoredWeights(f"compressed-tensors {name}", bits, max(group, 0), scale)


RULES: dict[str, Callable[[_Block], StoredWeights | None]] = {
    "gptq": _four_bit,
    "awq": _four_bit,
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "nvfp4": _nvfp4,
    "bitsandbytes": _bitsandbytes,
    "modelopt": _modelopt,
    "compressed-tensors": _compressed_tensors,
}
"""How a block is read, by its quant_method. A rule gives None for what it can't tell."""
