"""A process for tests of files: `python -m tests.brokers.worker VERB PATH ...`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from inorder.brokers.sqlite.file import File
from inorder.core.errors import InorderError
from inorder.logs.broker import Author
from tests.brokers.hands import events


def append(path: str, name: str, receipts: str, count: str) -> None:
    """Append one event after the other; each receipt is a line of a file."""
    file = File(path)
    me = Author(name, 1, True)
    n = file.within(file.facts.last, me) or 0
    notes = os.open(receipts, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for _ in range(int(count)):
        n += 1
        (offset,) = file.append(me, [events(me, "t", n, [n])])
        os.write(notes, f"{offset} {n}\n".encode())
    file.close()


def as_nobody(path: str, verb: str) -> None:
    """Open a file as a user without rights."""
    os.setgid(65534)
    os.setuid(65534)
    try:
        file = File(path, create=verb == "create")
        me = Author("nobody", 1, True)
        n = (file.within(file.facts.last, me) or 0) + 1
        file.append(me, [events(me, "t", n, [n])])
        file.close()
        print("done")
    except InorderError as error:
        print(type(error).__name__, str(error).replace(str(Path(path).parent), ""))


if __name__ == "__main__":
    {"append": append, "as_nobody": as_nobody}[sys.argv[1]](*sys.argv[2:])
