"""The wheel: built from the source tree, complete, and alive without the heavy parts."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_every_file_of_the_package(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "src").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT / "src")) in inside


def test_the_wheel_names_its_command_licence_and_extras(wheel):
    archive = zipfile.ZipFile(wheel)
    texts = {name.split("/")[-1]: archive.read(name).decode() for name in archive.namelist()
             if ".dist-info/" in name}  # fmt: skip
    assert "inorder = inorder.cli:main" in texts["entry_points.txt"]
    assert "License-Expression: Apache-2.0" in texts["METADATA"]
    assert "Provides-Extra: spark" in texts["METADATA"]
    required = [line for line in texts["METADATA"].splitlines() if line.startswith("Requires-Dist")]
    light = [line for line in required if "extra ==" not in line]
    assert all("spark" not in line and "numpy" not in line for line in light)


def test_the_wheel_simulates_without_the_heavy_parts(wheel, tmp_path):
    """Unpacked beside nothing but the light dependencies: the heavy ones are made to be missing."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "lib")
    code = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'numpy', 'scipy', 'pandas'): sys.modules[name] = None\n"
        "import inorder; assert inorder.__file__.startswith(sys.argv[1]), inorder.__file__\n"
        "sys.argv = ['inorder', *sys.argv[2:]]\n"
        "from inorder.cli import main; main()"
    )
    scenario = ROOT / "examples" / "partition.toml"

    def inorder(*words):
        command = [sys.executable, "-c", code, tmp_path / "lib", *words]
        environment = {"PYTHONPATH": str(tmp_path / "lib")}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    simulate = ["simulate", scenario, "--out", tmp_path / "t"]
    done = inorder(*simulate, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t" / "deliveries.jsonl").stat().st_size > 0
    market = ROOT / "examples" / "market.toml"
    for words in (simulate, ["audit", tmp_path / "t"], ["run", market, "--out", tmp_path / "m"]):
        done = inorder(*words)
        assert done.returncode == 2
        assert "is not installed: pip install 'inorder[spark]'" in done.stderr
        assert done.stderr.count("\n") == 1
