"""Subscriptions on shared storage: numbered changes that never change, and pinned versions.

```text
table.json                    says that this is such a table, and which one
changes/000000000001.jsonl    version 1: the rows of one append
snapshots/000000000256.jsonl  all that version 256 holds, to begin reading from
pinned/<query>/<batch>        the version that a micro-batch uses, for ever
```

Rule 1: a file is written aside, synced, and linked to its name, which fails if the name is taken:
        readers see whole files only, and two writers never take the same version.
Rule 2: versions have no gaps. What a version holds is checked before it gets its number.
Rule 3: the first to ask which version a micro-batch uses decides it: the latest one, and never an
        older one than the batch before. Everybody else, also after a crash, reads what was decided.

The storage must be one folder for all (a disk, NFS, a mounted volume) and know hard links. Nothing
is deleted but old pins.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from inorder.check.trace import SubscriptionRow
from inorder.core.errors import BadTrace, Misuse
from inorder.core.limits import PINNED_BATCHES_KEPT, SUBSCRIPTION_VERSIONS_PER_SNAPSHOT
from inorder.pipeline.match_state import Holdings, rows_of

_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.ENOSYS)


class SubscriptionTable:
    """A changelog of subscriptions in a folder; with `create` a new folder becomes one.

    >>> table = SubscriptionTable(tempfile.mkdtemp())
    >>> table.append([{"subscriber": "s", "topics": ["quotes"], "where": "price < 10"}])
    1
    >>> table.append([{"subscriber": "s", "op": "unsubscribe", "topics": ["quotes"]}])
    2
    >>> table.latest(), len(table.at(1)), len(table.at(2))
    (2, 1, 0)
    """

    def __init__(self, path: str | os.PathLike[str], create: bool = True) -> None:
        self.path = str(Path(path).absolute())
        self._root = Path(self.path)
        self._seen = 0  # a version that exists
        self._holdings: tuple[int, Holdings] = (0, Holdings())  # as of the last append
        if create:
            self._create()
        self.identity = self._identify()

    def __repr__(self) -> str:
        return f"SubscriptionTable({self.path!r})"

    def append(self, rows: Iterable[Any]) -> int:
        """Add changes (dicts, rows of a trace or of Spark), all or none; the version they make."""
        ordered = rows_of(rows)
        if not ordered:
            raise Misuse("an append without rows makes no version")
        data = b"".join(msgspec.json.encode(row) + b"\n" for row in ordered)
        while True:
            version, holdings = self._advanced()
            changes = holdings.staged(ordered)
            if _linked(self._change(version + 1), data):
                break
        version += 1
        holdings.take(changes)
        self._holdings = (version, holdings)
        if version % SUBSCRIPTION_VERSIONS_PER_SNAPSHOT == 0:
            lines = b"".join(msgspec.json.encode(row) + b"\n" for row in holdings.rows())
            _linked(self._snapshot(version), lines)
        return version

    def latest(self) -> int:
        """The newest version; 0 before the first append. Looks at a few names, not at all."""
        low, step = self._seen, 1
        while self._change(low + step).exists():
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            if self._change(middle).exists():
                low = middle
            else:
                high = middle
        self._seen = low
        return low

    def at(self, version: int) -> Holdings:
        """What is held at a version."""
        if version < 0 or (version > self._seen and version > self.latest()):
            raise Misuse(f"{self.path} has versions up to {self._seen}, not {version}")
        holdings = Holdings()
        first = self._newest_snapshot(version)
        if first:
            holdings.take(holdings.staged(_read(self._snapshot(first))))
        for each in range(first + 1, version + 1):
            holdings.take(holdings.staged(self.changes(each)))
        return holdings

    def changes(self, version: int) -> list[SubscriptionRow]:
        """The rows of one append."""
        return _read(self._change(version))

    def pin(self, query: str, batch: int) -> int:
        """The version that a micro-batch of a query uses, decided now if it is not yet."""
        if not _NAME.fullmatch(query) or batch < 0:
            raise Misuse(f"no version can be pinned for batch {batch} of the query {query!r}")
        folder = self._root / "pinned" / query
        known = _pinned(folder / str(batch))
        if known is not None:
            return known
        folder.mkdir(parents=True, exist_ok=True)
        # A disk far away may show an older state than the one another worker saw.
        version = max(self.latest(), _pinned(folder / str(batch - 1)) or 0)
        if not _linked(folder / str(batch), b"%d\n" % version):
            decided = _pinned(folder / str(batch))
            assert decided is not None, "the name was taken, and nobody deletes young pins"
            version = decided
        (folder / str(batch - PINNED_BATCHES_KEPT)).unlink(missing_ok=True)
        return version

    def _create(self) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        if (self._root / "table.json").exists():
            return
        names = {path.name for path in self._root.iterdir() if path.name[0] != "."}
        if strange := sorted(names - {"table.json", "changes", "snapshots"}):
            raise Misuse(f"{self.path} is no table of subscriptions, but holds {strange[0]!r}")
        for folder in ("changes", "snapshots"):
            (self._root / folder).mkdir(exist_ok=True)
        about = {"format": _FORMAT, "id": uuid.uuid4().hex}
        _linked(self._root / "table.json", json.dumps(about).encode())

    def _identify(self) -> str:
        file = self._root / "table.json"
        try:
            about = json.loads(file.read_bytes())
            if about["format"] != _FORMAT:
                raise BadTrace(str(file), f"format {about['format']!r} is not known here")
            return str(about["id"])
        except FileNotFoundError:
            raise Misuse(f"{self.path} is no table of subscriptions") from None
        except (ValueError, KeyError, TypeError):
            raise BadTrace(str(file), "is damaged") from None

    def _advanced(self) -> tuple[int, Holdings]:
        """The latest version and what it holds."""
        version, holdings = self._holdings
        latest = self.latest()
        if latest - version > SUBSCRIPTION_VERSIONS_PER_SNAPSHOT:
            self._holdings = (latest, self.at(latest))
            return self._holdings
        for each in range(version + 1, latest + 1):
            holdings.take(holdings.staged(self.changes(each)))
            self._holdings = (each, holdings)
        return self._holdings

    def _newest_snapshot(self, version: int) -> int:
        found = version - version % SUBSCRIPTION_VERSIONS_PER_SNAPSHOT
        while found and not self._snapshot(found).exists():
            found -= SUBSCRIPTION_VERSIONS_PER_SNAPSHOT
        return found

    def _change(self, version: int) -> Path:
        return self._root / "changes" / f"{version:012d}.jsonl"

    def _snapshot(self, version: int) -> Path:
        return self._root / "snapshots" / f"{version:012d}.jsonl"


def _read(path: Path) -> list[SubscriptionRow]:
    try:
        return msgspec.json.Decoder(SubscriptionRow).decode_lines(path.read_bytes())
    except FileNotFoundError:
        raise BadTrace(str(path), "does not exist") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadTrace(str(path), "is damaged") from None


def _pinned(path: Path) -> int | None:
    try:
        return int(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise BadTrace(str(path), "is damaged") from None


def _linked(path: Path, data: bytes) -> bool:
    """Write a file whole, and for good; false if there is one of that name already."""
    handle, aside = tempfile.mkstemp(prefix=".aside-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)
        os.link(aside, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise Misuse(f"the storage of {path.parent} knows no hard links") from None
        raise
    finally:
        os.unlink(aside)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True
