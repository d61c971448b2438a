"""Calibration of the catalog's kernel constants from tables of kernel measurements.

    python -m meshwright.measure.kernels FOLDER

reads FOLDER/gemm.csv and FOLDER/attention.csv and rewrites what they tell: of accelerators `matmul_efficiency` and
`memory_efficiency`, of attention kernels `operand_traffic` and `softmax_width`, each with `measured` beside it. How
much training keeps of a kernel's speed (`sustained`, and an attention kernel's `efficiency`) only training jobs tell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from meshwright.measure.attention_table import AttentionFit, MemoryFit, fit_memory, fit_prefill
from meshwright.measure.catalog_text import with_number, with_numbers, with_prose
from meshwright.measure.matmul_table import MatmulFit, fit_matmuls
from meshwright.sources.accelerators import load_accelerator
from meshwright.sources.attention_kernels import load_attention_kernel
from meshwright.sources.catalog import CATALOG, entry_names
from meshwright.sources.whole_files import write_whole
from meshwright.spec.errors import InputError

MATMULS, ATTENTION = "gemm.csv", "attention.csv"
ALIKE = {"bf16": ("tf32", "fp16")}
"""Formats whose units are the measured one's at another width and take its share where nobody has measured them."""


@dataclass(frozen=True)
class KernelFits:
    """All that the tables tell."""

    matmuls: tuple[MatmulFit, ...]
    memory: tuple[MemoryFit, ...]
    attention: tuple[AttentionFit, ...]


def fit_kernels(folder: Path) -> KernelFits:
    """Fits of the tables in `folder`; they don't depend on the constants that they replace. Raises InputError for a
    table that is missing or wrong."""
    memory = fit_memory(folder / ATTENTION)
    shares = {fit.accelerator: fit.share for fit in memory}
    return KernelFits(
        matmuls=tuple(fit_matmuls(folder / MATMULS, shares)),
        memory=tuple(memory),
        attention=tuple(fit_prefill(folder / ATTENTION, shares)),
    )


def update_catalog(fits: KernelFits, catalog: Path = CATALOG) -> list[str]:
    """Write the fitted constants into the entries of `catalog`; the names of entries that changed."""
    names = sorted({each.accelerator for each in fits.matmuls} | {each.accelerator for each in fits.memory})
    changed = [
        name for name in names if _write(catalog / "accelerators" / f"{name}.yaml", _accelerator_text, name, fits)
    ]
    kernels = [name for name in entry_names("attention") if load_attention_kernel(name).kernels]
    return changed + [
        name for name in kernels if _write(catalog / "attention" / f"{name}.yaml", _kernel_text, name, fits)
    ]


def implementations(name: str, fits: Iterable[AttentionFit]) -> list[AttentionFit]:
    """The fits of the catalog's attention kernel `name`: those of its implementations."""
    kernels = load_attention_kernel(name).kernels
    return [fit for fit in fits if fit.kernel in kernels]


def _write(path: Path, new_text: Callable[[str, str, KernelFits], str], name: str, fits: KernelFits) -> bool:
    old = path.read_text(encoding="utf-8")
    new = new_text(old, name, fits)
    if new != old:
        write_whole(path, new)
    return new != old


def _accelerator_text(text: str, name: str, fits: KernelFits) -> str:
    accelerator = load_accelerator(name)
    told = []
    memory = [fit for fit in fits.memory if fit.accelerator == name]
    for each in memory:
        text = with_number(text, "memory_efficiency", each.share, before="peak_flops_per_s")
        told.append(f"memory_efficiency: {each.calls} large decode calls of {each.kernel}")
    matmuls = [fit for fit in fits.matmuls if fit.accelerator == name]
    if matmuls:
        fitted = {fit.dtype: fit.share for fit in matmuls}
        fitted = {alike: fitted[dtype] for dtype in fitted for alike in ALIKE.get(dtype, ())} | fitted
        shares = {dtype: fitted[dtype] for dtype in accelerator.peak_flops_per_s if dtype in fitted}
        for fit in matmuls:
            cast = f", {fit.cast_bytes:.1f} bytes to cast an element" if fit.cast_bytes else ""
            told.append(f"matmul_efficiency of {fit.dtype}: {fit.kernels}, {fit.residual}{cast}")
        heir = accelerator.inherits and "\nmatmul_efficiency:" not in text
        text = with_numbers(text, "matmul_efficiency", shares, before="library")
        if heir:
            text = with_number(text, "sustained", accelerator.sustained, before="library")
    return with_prose(text, "measured", f"{'; '.join(told)}.", before="notes") if told else text


def _kernel_text(text: str, name: str, fits: KernelFits) -> str:
    found = implementations(name, fits.attention)
    if not found:
        return text
    widths: dict[str, list[float]] = {}
    for fit in found:
        if fit.softmax_width:
            widths.setdefault(fit.family, []).append(fit.softmax_width)
    text = with_number(text, "operand_traffic", median(fit.operand_traffic for fit in found), before="source")
    if widths:
        shared = {family: median(values) for family, values in sorted(widths.items())}
        text = with_numbers(text, "softmax_width", shared, before="source")
    told = "; ".join(
        f"{fit.kernel} ({fit.engine}) on {fit.accelerator} {fit.share:.3f}, {fit.residual}" for fit in found
    )
    return with_prose(text, "measured", f"Forward shares of single kernels: {told}.", before="notes")


def main(arguments: list[str], catalog: Path = CATALOG) -> int:
    """Fit and write; the exit status."""
    if len(arguments) != 1:
        print("usage: python -m meshwright.measure.kernels FOLDER", file=sys.stderr)
        return 2
    try:
        fits = fit_kernels(Path(arguments[0]))
        changed = update_catalog(fits, catalog)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(fits.matmuls)} fits of products, {len(fits.attention)} of attention kernels")
    print(f"rewritten: {', '.join(changed)}" if changed else "the catalog has these constants already")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
