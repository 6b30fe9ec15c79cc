"""What commands that need Spark share: where it runs, its settings, and how it is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Empty: local[*], or what spark-submit says.
Master = Annotated[
    str, typer.Option(help="Where Spark runs: local[2], spark://host:7077, yarn, k8s://...")
]
Conf = Annotated[
    list[str] | None, typer.Option(help="A Spark setting, key=value; may be repeated.")
]


def start(
    master: str, conf: list[str] | None, progress: Callable[[str, float], None]
) -> SparkSession:
    """The session these options ask for; wrong settings are refused before Java starts."""
    settings = pairs(conf or [], "--conf", "key=value")
    progress("starting Spark", 0.0)
    from inorder.pipeline.session import session

    return session(master or None, settings)


def pairs(texts: list[str], option: str, shape: str) -> dict[str, str]:
    """`a=b` texts as a dictionary.

    >>> pairs(["nth=offset"], "--columns", "ours=theirs")
    {'nth': 'offset'}
    """
    from inorder.core.errors import Misuse

    found: dict[str, str] = {}
    for text in texts:
        if not text.strip():
            continue
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise Misuse(f"{option}: {text!r} is not {shape}")
        if name in found:
            raise Misuse(f"{option}: {name!r} is given twice")
        found[name] = value
    return found
