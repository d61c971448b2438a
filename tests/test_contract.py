"""What the package promises as a whole: one direction of imports, and planning that stays light."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Runs the command line with its own arguments, in an interpreter where an import of a heavy package is an error even
# if it is caught; then writes the names of the modules that were loaded to the file named first.
WATCHED = """
import json, sys
from pathlib import Path

blocked = {"torch", "transformers", "matplotlib", "scipy", "pandas"}
attempts = []

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            attempts.append(name)
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Block())
report, *sys.argv[1:] = sys.argv[1:]
try:
    import meshwright
    from meshwright.cli import main
    main()
finally:
    Path(report).write_text(json.dumps({"attempts": attempts, "modules": sorted(sys.modules)}))
"""


def run_watched(tmp_path: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, list[str]]]:
    report = tmp_path / "imports.json"
    command = [sys.executable, "-c", WATCHED, str(report), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    return done, json.loads(report.read_text())


def test_a_plan_is_found_without_torch_or_a_plotting_library(tmp_path: Path) -> None:
    command = "plan gpt2 --cluster 1xdgx-a100-80g --global-batch 64 --seq-len 1024 --json"
    done, imports = run_watched(tmp_path, *shlex.split(command))
    assert done.returncode == 0, done.stderr
    assert imports["attempts"] == []

    best = json.loads(done.stdout)["best"]
    plan = best["plan"]
    assert best["cluster"]["accelerators"] == 8  # a DGX A100 has eight (NVIDIA DGX A100 data sheet)
    assert plan["tp"] * plan["cp"] * plan["pp"] * plan["dp"] == 8  # a plan uses all accelerators
    assert plan["dp"] * plan["micro_batch"] * plan["num_micro_batches"] == 64  # and works through the whole batch
    assert sum(plan["layers_per_stage"]) == 12  # GPT-2's layers (Radford et al. 2019, table 2)
    assert sum(best["time_s"].values()) == pytest.approx(best["step_time_s"])


def test_help_imports_neither_numpy_nor_pydantic(tmp_path: Path) -> None:
    done, imports = run_watched(tmp_path, "--help")
    assert done.returncode == 0, done.stderr
    assert "plan" in done.stdout
    assert {"numpy", "pydantic", "yaml"}.isdisjoint(imports["modules"])


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of the `pyproject.toml` in `folder` on the package in its `src`."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "NO_COLOR": "1"}
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)


def test_every_room_imports_in_the_one_direction(repository: Path) -> None:
    done = lint_imports(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("cost/planted.py", "import torch", "Planning imports neither torch nor a plotting library"),
        ("cost/planted.py", "import meshwright.choose", "Rooms import in one direction"),
        ("cost/planted.py", "import meshwright", "Rooms import in one direction"),
        ("cli/planted.py", "import matplotlib.pyplot", "The command line itself imports neither"),
        ("show/planted.py", "import meshwright.cli", "Rooms import in one direction"),
        ("planted/__init__.py", "", "Rooms import in one direction"),
    ],
    ids=["torch in cost", "cost to choose", "cost to the public API", "plots in cli", "show to cli", "unlisted room"],
)
def test_a_planted_violation_breaks_the_contract(
    tmp_path: Path, repository: Path, file: str, line: str, broken: str
) -> None:
    package = tmp_path / "src" / "meshwright"
    shutil.copytree(repository / "src" / "meshwright", package, ignore=shutil.ignore_patterns("__pycache__", "catalog"))
    shutil.copy(repository / "pyproject.toml", tmp_path)
    planted = package / file
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(f"{line}\n")

    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert any(broken in row and "BROKEN" in row for row in done.stdout.splitlines()), done.stdout + done.stderr
