"""All that can go wrong, in one look.

    MeshwrightError
    └── InputError            the input can't be understood (exit 2)
        ├── UnknownName       no entry of that name; near names are suggested
        └── UnsupportedModel  an architecture, or a fact about it, that can't be read exactly; `missing` names the facts

A plan that breaks a rule or does not fit is an answer, not an error: see `Plan` and `Estimate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class MeshwrightError(Exception):
    """Base of every error that Meshwright raises on purpose."""


class InputError(MeshwrightError):
    """The input can't be understood: `where` is the file or option, `fix` the nearest thing that works."""

    def __init__(self, message: str, where: str = "", fix: str = "") -> None:
        super().__init__(message, where, fix)
        self.message = message
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        located = f"{self.where}: {self.message}" if self.where else self.message
        return f"{located}; {self.fix}" if self.fix else located


class UnknownName(InputError):  # noqa: N818 (a name of the public API)
    """No entry of the `kind` (model, cluster, …) is called `name`."""

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = "", fix: str = "") -> None:
        self.kind = kind
        self.name = name
        self.near = near_names(name, known)
        if not fix and self.near:
            fix = f"did you mean {' or '.join(self.near)}?"
        super().__init__(f"no {kind} is called {_shown(name)}", where, fix)


class UnsupportedModel(InputError):  # noqa: N818
    """A model of this `architecture` can't be described exactly; `missing` says which facts are not known."""

    def __init__(self, architecture: str, missing: Iterable[str], where: str = "", fix: str = "") -> None:
        self.architecture = architecture
        self.missing = tuple(missing)
        facts = ", ".join(self.missing) or "its layers"
        super().__init__(f"can't count a {architecture} model exactly: not known here: {facts}", where, fix)


def near_names(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The known names that `name` may have meant, best first. Case and `_` for `-` don't count as differences."""
    by_plain = {_plain(candidate): candidate for candidate in known}
    wanted = _plain(name[:200])
    close = get_close_matches(wanted, by_plain, n=limit, cutoff=0.6)
    if not close and len(wanted) > 2:
        close = sorted((plain for plain in by_plain if plain.startswith(wanted) or wanted.startswith(plain)), key=len)
    return tuple(by_plain[plain] for plain in close[:limit])


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").strip()


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "…")
