"""Style is a test: sizes, stray words, and what must not be in the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500


def tracked(*patterns: str) -> list[Path]:
    """Files git knows or would add; an exported tree without git is searched as it is."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.split("\n") if name and (ROOT / name).exists()]
    return [
        path for pattern in patterns for path in ROOT.rglob(pattern) if ".venv" not in path.parts
    ]


PYTHON = tracked("*.py")


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{node.name} has {lines} lines"


def test_no_path_of_one_machine_stands_in_the_repository():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked("*.py", "*.md", "*.toml", "*.txt", "*.sh", "Makefile", ".ci/*")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"(?<![\w.])/(work|home|root|Users)/\w", line)
    ]
    assert found == []


def test_no_module_is_dead():
    """Every module of the package is imported by another one, by an experiment or a bench, or is a
    way in."""
    source = ROOT / "src" / "inorder"
    # Slow twins, scripts, the exhaustive search and the theory are there for tests and researchers.
    tools = {
        "inorder.check.slow", "inorder.sim.script", "inorder.sim.exhaust",
        "inorder.protocols.fifo.bounds", "inorder.protocols.fifo.delays",
    }  # fmt: skip
    ways_in = {"inorder.cli", "inorder", "inorder.bus.parameters", *tools}
    modules = {
        ".".join(("inorder", *path.relative_to(source).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for path in source.rglob("*.py")
    }
    imported: set[str] = set()
    users = [source, ROOT / "experiments", ROOT / "benches"]
    for path in (path for folder in users for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inorder"):
                imported.add(node.module or "")
                imported.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
    packages = {module for module in modules if any(m.startswith(f"{module}.") for m in modules)}
    assert sorted(modules - imported - ways_in - packages) == []
