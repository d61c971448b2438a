"""Write the pages that follow from the program itself, so that they cannot lag behind it.

    python docs/generate.py

`commands.md` comes from the command line's own declarations, `catalog.md` from the catalog's entries, and
`topologies.md`, a part of `topology.md`, from the printouts in `topologies/`; `families.md`, a part of `models.md`,
from the tables of Hugging Face classes. PAGES names each file beside this one and the function that returns its text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from model_families import families_table
from topologies import examples_table

from meshwright.cli import app
from meshwright.sources.attention_kernels import load_attention_kernel
from meshwright.sources.catalog import entry_names
from meshwright.sources.hardware_rows import catalog_rows
from meshwright.sources.models import load_model_entry, model_names
from meshwright.sources.software import load_software

DOCS = Path(__file__).resolve().parent
PROGRAM = "meshwright"


def commands_page() -> str:
    """Every command with its usage line, help text, arguments and options, in the order of `meshwright --help`."""
    root = typer.main.get_command(app)
    context = root.make_context(PROGRAM, [], resilient_parsing=True)
    sections = ["# Commands", _prose(root.help), *_subcommands(root, context)]
    return "\n\n".join(filter(None, sections)) + "\n"


def _subcommands(group: Any, context: Any) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        below = type(context)(command, info_name=name, parent=context)
        yield _command_section(command, below)
        if hasattr(command, "list_commands"):
            yield from _subcommands(command, below)


def _command_section(command: Any, context: Any) -> str:
    usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
    parts = [f"## {context.command_path}", _prose(command.help), f"```text\n{usage}\n```"]
    parts += [f"**{title}**\n\n{_table(rows)}" for title, rows in _help_records(command, context).items()]
    return "\n\n".join(filter(None, parts))


def _help_records(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Title → (name and value, help) of each parameter: arguments first, then the panels of options as declared."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for kind, default_title in (("argument", "Arguments"), ("option", "Options")):
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if parameter.param_type_name == kind and record is not None and parameter.name != "help":
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or default_title, []).append(record)
    return panels


def _table(rows: list[tuple[str, str]]) -> str:
    lines = ["| | |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(text)} |" for name, text in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Help text as one cell of a Markdown table: on one line, with nothing that Markdown would take for its own."""
    flat = " ".join(text.split())
    for character in "\\|<>*[]":
        flat = flat.replace(character, "\\" + character)
    return flat


def _prose(text: str | None) -> str:
    return inspect.cleandoc((text or "").split("\f")[0].replace("\b\n", ""))


Column = tuple[str, Callable[[dict[str, Any]], str]]


def catalog_page() -> str:
    """Every entry of the catalog with its main figures and its source."""
    sections = ["# Catalog", "Each entry is one file; [how to add one](adding.md).", _models_section()]
    sections += [_hardware_section(kind, columns) for kind, columns in HARDWARE.items()]
    return "\n\n".join([*sections, _software_section(), _kernel_section()]) + "\n"


def _models_section() -> str:
    rows = []
    for model in map(load_model_entry, model_names()):
        active = f"{model.active_parameters:,}" if model.is_moe else ""
        rows.append(
            [
                f"`{model.name}`",
                f"{model.num_parameters:,}",
                active,
                str(model.num_layers),
                _cell(", ".join(model.hub_ids)),
            ]
        )
    return _grid("Models", ["name", "parameters", "of these per token", "layers", "Hub ids"], rows)


def _hardware_section(kind: str, columns: tuple[Column, ...]) -> str:
    rows = [
        [f"`{row['name']}`", _cell(row["title"]), *(cell(row) for _, cell in columns), _cell(row["source"])]
        for row in catalog_rows(kind)
    ]
    return _grid(kind.capitalize(), ["name", "", *(title for title, _ in columns), "source"], rows)


def _software_section() -> str:
    profiles = map(load_software, entry_names("software"))
    rows = [
        [f"`{profile.name}`", _cell(profile.title), f"`{profile.attention.name}`", _cell(profile.source)]
        for profile in profiles
    ]
    return _grid("Software profiles", ["name", "", "attention kernel", "source"], rows)


def _kernel_section() -> str:
    kernels = map(load_attention_kernel, entry_names("attention"))
    rows = [[f"`{kernel.name}`", _cell(kernel.title), _cell(kernel.source)] for kernel in kernels]
    return _grid("Attention kernels", ["name", "", "source"], rows)


def _grid(title: str, header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return f"## {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _scaled(key: str, unit: float, digits: int = 0) -> Callable[[dict[str, Any]], str]:
    """A cell that shows the row's value in multiples of `unit`, and nothing where there is none."""
    return lambda row: "" if row[key] is None else f"{row[key] / unit:,.{digits}f}"


def _plain(key: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: "" if row[key] is None else _cell(str(row[key]))


HARDWARE: dict[str, tuple[Column, ...]] = {
    "accelerators": (
        ("memory, GiB", _scaled("memory_gib", 1, 1)),
        ("memory, GB/s", _scaled("memory_bytes_per_s", 1e9)),
        ("bf16, TFLOP/s", _scaled("bf16_flops_per_s", 1e12)),
        ("fp8, TFLOP/s", _scaled("fp8_flops_per_s", 1e12)),
    ),
    "clusters": (
        ("accelerator", _plain("accelerator")),
        ("per node", _plain("accelerators_per_node")),
        ("innermost link", _plain("link")),
        ("of GB/s", _scaled("bytes_per_s", 1e9)),
        ("fabric", _plain("fabric")),
        ("of GB/s per node", _scaled("node_fabric_bytes_per_s", 1e9, 1)),
    ),
    "fabrics": (
        ("port, Gb/s", _scaled("port_bytes_per_s", 1e9 / 8)),
        ("ports per node", _plain("ports_per_node")),
        ("efficiency", _plain("efficiency")),
    ),
}


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "catalog.md": catalog_page,
    "topologies.md": examples_table,
    "families.md": families_table,
}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
