"""The one place where exceptions of Spark, Java and Arrow become ours: one sentence, no traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from inorder.core.errors import BadTrace, InorderError, Misuse

WORDS_MAX = 200  # characters of somebody else's message that we pass on

# What a message tells, looked for in this order.
_TOLD = (
    (r"OutOfMemoryError|Java heap space|GC overhead", "memory"),
    (r"No space left on device", "disk"),
    (r"PATH_NOT_FOUND|does not exist|FileNotFoundException", "does not exist"),
    (r"is not a Parquet file|READ_FILE_FOOTER|FAILED_READ_FILE\.\w*FOOTER", "not Parquet"),
    (r"EOFException|Unexpected end of|not in GZIP|incorrect header|invalid stored block", "cut"),
    (r"AccessDenied|AccessControlException|Permission denied", "may not be read"),
    (r"MALFORMED_CSV|CSV header", "has files whose header lines differ"),
)


@contextmanager
def boundary(path: str) -> Iterator[None]:
    """Anything that goes wrong inside while reading `path` leaves as an error of ours."""
    try:
        yield
    except (InorderError, KeyboardInterrupt):
        raise
    except Exception as error:
        if not _is_foreign(error):
            raise
        raise translate(path, error) from None


def translate(path: str, error: Exception) -> InorderError:
    """Our error for one of Spark's."""
    text = f"{type(error).__name__}: {error}"
    # Our own Python on the other side of the JVM has said it best.
    if ours := re.findall(r"^\s*(?:\S+: )?inorder\.errors\.\w+: (.+)$", text, re.MULTILINE):
        return Misuse(ours[-1].strip())
    kind = next((kind for pattern, kind in _TOLD if re.search(pattern, text)), "")
    if kind == "memory":
        return Misuse(f"Spark ran out of memory on {path}: raise spark.driver.memory")
    if kind == "disk":
        return Misuse(f"no space left on the disk while judging {path}")
    culprit = _file_in(text) or path
    if kind == "not Parquet":
        return BadTrace(culprit, "is not a whole Parquet file")
    if kind == "cut":
        return BadTrace(culprit, "is cut short or damaged: it ends in mid-stream")
    if kind:
        return BadTrace(culprit, kind)
    return BadTrace(culprit, f"cannot be read ({_first_words(error)})")


def _is_foreign(error: Exception) -> bool:
    rooms = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(rooms & {"pyspark", "py4j", "pyarrow"}) or isinstance(error, OSError)


def _file_in(text: str) -> str:
    found = re.search(r"file:/+([^\s,;:)\"'?]+\.\w+)", text)
    return "/" + unquote(found[1]) if found else ""


def _first_words(error: Exception) -> str:
    """The first line that is no Java frame, shortened."""
    # Of a Python worker's traceback the last exception tells most.
    if raised := re.findall(r"^([\w.]*(?:Error|Exception): .+)$", str(error), re.MULTILINE):
        return str(raised[-1])[:WORDS_MAX]
    lines = (line.strip() for line in str(error).splitlines())
    said = next((line for line in lines if line and not line.startswith("at ")), "")
    said = re.sub(r"An error occurred while calling [\w.]+:?", "Spark failed", said)
    said = re.sub(r"\b(?:[a-z]\w*\.){2,}[A-Z]\w*(?:: )?", "", said).strip().rstrip(".")
    return (said or type(error).__name__)[:WORDS_MAX]
