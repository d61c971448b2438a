"""Fitted constants of links into the catalog's files: those keys only, everything else of the file as it stands.

`python -m meshwright.measure.links FOLDER` does it with FOLDER/collectives.csv and prints what it fitted and how well
that holds, also on the curves that it was not fitted on.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

from meshwright.measure.collectives_table import MIB, read_calls
from meshwright.measure.links_fit import LIBRARY, Bench, LinkFit, benches, fit_benches
from meshwright.sources.catalog import CATALOG
from meshwright.sources.whole_files import write_whole
from meshwright.spec.errors import InputError
from meshwright.spec.plan import Array

FILE = "collectives.csv"


def fit_links(folder: Path, catalog: Path = CATALOG) -> LinkFit:
    """Fit on `folder`/collectives.csv and rewrite the constants, and the residuals beside them, in the catalog's
    families of links and in its description of the library. The same data leave the same files."""
    fit = fit_benches(benches(read_calls(folder / FILE)))
    texts = {}
    for owner in dict.fromkeys(owner for owner, _ in fit.values):
        path = catalog / ("collectives" if owner == LIBRARY else "links") / f"{owner}.yaml"
        text = path.read_text(encoding="utf-8")
        for (of, key), value in fit.values.items():
            if of == owner:
                text = _with(path, text, key, value)
        on = [bench for bench in fit.benches if owner in (LIBRARY, *bench.links[-1:])]
        texts[path] = _replaced(path, text, r"(?m)^residual: .*$", f"residual: {residual(fit, on)}")
    for path, text in texts.items():
        write_whole(path, text)
    return fit


def residual(fit: LinkFit, on: list[Bench]) -> str:
    """Errors of the fit on some benches, in words."""
    ratios = np.concatenate([fit.log_ratios(bench) for bench in on])
    sizes = np.concatenate([bench.series.payload_bytes for bench in on])
    parts = [
        f"median error {_percents(ratios[sizes >= MIB], ', 90th percentile ')} from 1 MiB",
        f"{_percents(ratios[(sizes >= MIB / 16) & (sizes < MIB)], ', ')} from 64 KiB",
        f"{_percents(ratios[sizes < MIB / 16], ', ')} below",
    ]
    return f"{'; '.join(parts)} ({len(ratios):,} points)"


def _percents(log_ratios: Array, between: str) -> str:
    errors = np.abs(np.expm1(log_ratios))
    return f"{100 * np.median(errors):.1f}%{between}{100 * np.quantile(errors, 0.9):.0f}%"


def _with(path: Path, text: str, key: str, value: float) -> str:
    protocol, dot, own = key.partition(".")
    if not dot:
        name, shown = _shown(key, value)
        return _replaced(path, text, rf"(?m)^({name}:) [^\s#]+", rf"\g<1> {shown}")
    for each in ("ring_base_s", "tree_base_s") if own == "base_s" else (own,):
        name, shown = _shown(each, value)
        text = _replaced(path, text, rf"(?m)^(  - \{{name: {protocol},.*?\b{name}:) [^\s,}}]+", rf"\g<1> {shown}")
    return text


def _shown(key: str, value: float) -> tuple[str, str]:
    """The key and value as the catalog writes them: three digits."""
    if key.endswith("base_s"):
        return key.replace("base_s", "base_us"), f"{value * 1e6:.3g}"
    for end, unit in (("_per_sqrt_byte", -9), ("_bytes_per_s", 9), ("_s", -6)):
        if key.endswith(end):
            return rf"{key}", f"{value / 10.0**unit:.4g}e{unit}" if unit == 9 else f"{value / 10.0**unit:.3g}e{unit}"
    return key, f"{value:.3g}"


def _replaced(path: Path, text: str, pattern: str, by: str) -> str:
    found, count = re.subn(pattern, by, text, count=1)
    if not count:
        raise InputError(f"has no line for a fitted constant ({pattern})", str(path))
    return found


def _main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m meshwright.measure.links FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        fit = fit_links(folder)
        held_out = benches(read_calls(folder / FILE), lambda curve: curve.held_out)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for (owner, key), value in fit.values.items():
        print(f"{owner:20} {key:26} {value:.3g}")
    for gpu in dict.fromkeys(bench.series.gpu for bench in fit.benches):
        print(f"{gpu:20} {residual(fit, [bench for bench in fit.benches if bench.series.gpu == gpu])}")
    for gpu in dict.fromkeys(bench.series.gpu for bench in held_out):
        print(f"{gpu:20} {residual(fit, [bench for bench in held_out if bench.series.gpu == gpu])}; not fitted on")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
