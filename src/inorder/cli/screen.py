"""What commands share on the screen: a console, and a progress bar that stays off pipes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True)


def order_of(text: str) -> dict[str, object]:
    """`--order mode=tag,buffer=30` as a table."""
    from inorder.core.settings import assignment

    return dict(assignment(word) for word in text.split(",") if word.strip())


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None]]:
    """A bar on standard error, shown only to a person; call the result with a share of 1."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def progress_steps() -> Iterator[Callable[[str, float], None]]:
    """The same for work in named steps, one after the other."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(what: str, share: float) -> None:
            # A step that cannot say how far it is (Spark's) shows a pulsing bar.
            total = None if share == 0.0 else 1.0
            bar.update(task, description=what, completed=share, total=total)

        yield show
