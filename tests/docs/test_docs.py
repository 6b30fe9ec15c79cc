"""What the docs show must work: Python blocks run, TOML blocks are valid, commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import pytest
import typer

from inorder.cli import app
from inorder.cli.job import job_of
from inorder.sim.scenario import parse

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def with_blocks(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.parametrize("page", with_blocks("python"), ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "docs"}
    for number, block in enumerate(blocks(page, "python"), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", with_blocks("toml"), ids=lambda page: page.name)
def test_the_toml_of_a_page_is_valid(page):
    for block in blocks(page, "toml"):
        if block.startswith("# scenario"):
            parse(block)
        elif block.startswith("# job"):
            job_of(msgspec.toml.decode(block))
        else:
            msgspec.toml.decode(block)


@pytest.mark.parametrize("page", with_blocks("sh"), ids=lambda page: page.name)
def test_the_commands_of_a_page_exist_with_their_options(page):
    commands = typer.main.get_command(app).commands
    for line in "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] != "inorder":
            continue
        assert words[1] in commands, line
        known = {option for param in commands[words[1]].params for option in param.opts}
        used = {word.split("=")[0] for word in words if word.startswith("--")}
        assert used <= known, line


def test_every_test_that_a_page_names_is_there():
    """`test_of_some_words`, or `test_some_...` for all that begin so."""
    sources = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    known = {name for text in sources for name in re.findall(r"def (test_\w+)", text)}
    for page in PAGES:
        for name, some in re.findall(r"`(test_\w+?)(_\.\.\.)?`", page.read_text()):
            if some:
                assert any(each.startswith(f"{name}_") for each in known), f"{page.name}: {name}"
            elif name.count("_") > 2:
                assert name in known, f"{page.name} names {name}"


def test_every_link_to_a_file_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
