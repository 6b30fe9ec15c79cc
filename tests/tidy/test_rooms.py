"""The house keeps its rooms: who imports whom, and what protocol rooms do without."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tests.tidy import purity, rooms

PURE_FILES = [path for path in rooms.files() if rooms.room_of(path) in rooms.PURE]


@pytest.mark.parametrize(
    "path", rooms.files(), ids=lambda path: str(path.relative_to(rooms.SOURCE))
)
def test_every_file_imports_only_what_its_room_may(path):
    room = rooms.room_of(path)
    assert room in rooms.MAY_IMPORT, f"{room} is not on the map of the house"
    assert rooms.wrong_imports(room, ast.parse(path.read_text())) == []


def test_a_planted_wrong_import_is_seen():
    tree = ast.parse("def f():\n    from inorder.sim.world import World\n")
    assert rooms.wrong_imports("protocols.total", tree) == [
        "line 2: protocols.total must not import sim"
    ]
    sibling = ast.parse("from inorder.protocols.fifo import header\n")
    assert rooms.wrong_imports("protocols.total", sibling) == [
        "line 1: protocols.total must not import protocols.fifo"
    ]
    assert rooms.wrong_imports("cli", tree) == []


@pytest.mark.parametrize("path", PURE_FILES, ids=lambda path: str(path.relative_to(rooms.SOURCE)))
def test_protocol_rooms_use_no_clock_chance_or_io_and_walk_no_set(path):
    assert purity.impurities(ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "planted",
    [
        "import time",
        "from random import Random",
        "def f():\n    import asyncio",
        "open('x')",
        "for x in {1, 2}: pass",
        "x = set()\nfor y in x: pass",
        "class C:\n    def f(self):\n        self.x: set[int] = set()\n        return list(self.x)",
        "def f(a: frozenset[str]): return [b for b in a]",
        "def f(a: set[str], b: set[str]): return [*(a - b)]",
        "','.join({'a', 'b'})",
    ],
)
def test_a_planted_impurity_is_seen(planted):
    assert purity.impurities(ast.parse(planted)) != []


@pytest.mark.parametrize(
    "harmless",
    [
        "x: set[int] = set()\nfor y in sorted(x): pass",
        "x = {1, 2}\nassert 1 in x and len(x) == 2",
        "def f(a: set[str], b: set[str]): return sorted({*a, *b})",
        "x = {1: 2}\nfor y in x: pass",
    ],
)
def test_what_is_harmless_is_left_alone(harmless):
    assert purity.impurities(ast.parse(harmless)) == []


def test_importing_inorder_loads_no_heavy_part():
    code = (
        "import sys, inorder\n"
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'scipy', 'pandas', 'sqlglot', 'typer', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_starts_without_spark():
    code = (
        "import sys, inorder.cli\n"
        "print(sorted({'pyspark', 'pyarrow', 'numpy', 'scipy', 'sqlglot'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_bound_has_its_reason():
    text = (rooms.SOURCE / "core" / "limits.py").read_text()
    blocks = re.split(r"\n\n", text.split("import annotations", 1)[1].strip())
    for block in blocks:
        assert block.lstrip().startswith("#"), f"a bound without a reason:\n{block}"
