"""Environments of what the bus is measured beside: made once, below the folder `out`.

`today` is the wheel of the commit before the bus was rebuilt over logs. UmaDB and eventsourcing are
installed from the package index, if it can be reached. What cannot be had is said, and left out.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "out" / "benches"
BEFORE = "6c35545"
UV = ROOT / ".tools" / "uv" / "bin" / "uv"


def pythons() -> dict[str, Path]:
    """The Python of each way that can be played here."""
    here = Path(sys.executable)
    found = dict.fromkeys(("total", "none", "quick", "sqlite", "thread"), here)
    for name, make in (
        ("today", _today),
        ("umadb", lambda: _installed("umadb", "umadb", "msgspec")),
        ("eventsourcing", lambda: _installed("eventsourcing", "eventsourcing", "msgspec")),
    ):
        try:
            found[name] = make()
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name} is left out: {error}")
    return found


def _installed(name: str, *packages: str) -> Path:
    python = PLACE / name / "bin" / "python"
    done = PLACE / f"{name}.done"
    if not done.exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        _call(UV, "venv", "-q", "--clear", PLACE / name)
        _call(UV, "pip", "install", "-q", "--python", python, *packages)
        done.touch()
    return python


def _today() -> Path:
    wheels = PLACE / "wheel"
    if not [*wheels.glob("*.whl")]:
        source = PLACE / "source"
        source.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(
            ["git", "archive", BEFORE], cwd=ROOT, check=True, capture_output=True, timeout=60
        )
        subprocess.run(["tar", "x", "-C", source], input=packed.stdout, check=True, timeout=60)
        _call(UV, "build", "-q", "--wheel", "-o", wheels, source)
    [wheel] = wheels.glob("*.whl")
    return _installed("today", str(wheel))


def _call(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, timeout=300)
