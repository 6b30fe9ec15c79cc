"""A disk below SQLite that knows what was synced, and that fails when told to.

SQLite reaches the disk through a table of functions (its VFS). This one passes everything on, keeps
a picture of each file as of its last sync, and can let a call fail. What a power cut leaves is
those pictures: everything that was written and not synced is gone.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

OK, FULL, IOERR_WRITE, IOERR_SYNC = 0, 13, 778, 1034

_FUNCTIONS = 18
# Names stay pointers: SQLite keeps more behind the text.
_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", c_int), ("file_bytes", c_int), ("path_bytes", c_int), ("next", c_void_p),
        ("name", c_char_p), ("data", c_void_p), ("open", _OPEN), ("others", c_void_p * 15),
    ]  # fmt: skip


class _Methods(ctypes.Structure):
    _fields_ = [("version", c_int), ("calls", c_void_p * _FUNCTIONS)]


_CLOSE_AT, _READ_AT, _WRITE_AT, _TRUNCATE_AT, _SYNC_AT = range(5)


# A connection that a failed test left open still calls what it was opened with.
_kept: list[Any] = []


class Disk:
    """The files of one folder, and of its neighbours, which are not pictured. `synced` are the
    pictures; `fail` may answer a call with a code of SQLite's before it happens: it is given
    "write" or "sync", and the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.synced: dict[str, bytes] = {}
        self.syncs = 0
        self.fail: Callable[[str, Path], int] = lambda verb, path: OK
        self.on_sync: Callable[[], None] = lambda: None
        self._paths: dict[int, Path] = {}
        # Never closed meanwhile: who closes a handle of a file gives up SQLite's locks on it.
        self._handles: dict[int, int] = {}
        self._old: list[int] = []
        self._methods: dict[int, _Methods] = {}

    @contextmanager
    def below(self) -> Iterator[Disk]:
        """SQLite files that are opened meanwhile lie on this disk."""
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        library.sqlite3_vfs_find.argtypes = [c_char_p]
        library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
        library.sqlite3_vfs_unregister.argtypes = [c_void_p]
        self._real = library.sqlite3_vfs_find(None)
        ours = _Vfs.from_buffer_copy(self._real.contents)
        ours.name = b"disk-of-tests"
        ours.open = _OPEN(self._open)
        _kept.extend([ours, ours.open, self, self._methods])
        library.sqlite3_vfs_register(ctypes.byref(ours), 1)
        try:
            yield self
        finally:
            library.sqlite3_vfs_unregister(ctypes.byref(ours))
            library.sqlite3_vfs_register(self._real, 1)
            for handle in (*self._handles.values(), *self._old):
                os.close(handle)
            self._handles.clear()
            self._old.clear()

    def _open(self, vfs: int, name: int | None, file: int, flags: int, answer: int) -> int:
        code: int = self._real.contents.open(
            ctypes.cast(self._real, c_void_p), name, file, flags, answer
        )
        path = Path(ctypes.string_at(name).decode()) if name else Path()
        if code == OK and path.is_relative_to(self.folder.parent):
            methods = ctypes.cast(file, POINTER(c_void_p))
            methods[0] = ctypes.addressof(self._table(methods[0] or 0))
            self._paths[file] = path
            if file in self._handles:
                self._old.append(self._handles[file])
            self._handles[file] = os.open(path, os.O_RDONLY)
        return code

    def _table(self, real: int) -> _Methods:
        if real not in self._methods:
            table = _Methods.from_buffer_copy(_Methods.from_address(real))
            write = _WRITE(table.calls[_WRITE_AT])

            def writing(file: int, data: int, size: int, at: int) -> int:
                return self.fail("write", self._paths[file]) or write(file, data, size, at)

            def syncing(file: int, flags: int) -> int:
                path = self._paths[file]
                # The real disk is spared: what is written here is there for every process.
                code = self.fail("sync", path)
                if code == OK and path.parent == self.folder:
                    self.synced[path.name] = os.pread(self._handles[file], 1 << 30, 0)
                    # SQLite syncs the folder itself, past these functions: deletions are kept.
                    for name in [n for n in self.synced if not (self.folder / n).exists()]:
                        del self.synced[name]
                    self.syncs += 1
                    self.on_sync()
                return code

            for place, made in ((_WRITE_AT, _WRITE(writing)), (_SYNC_AT, _SYNC(syncing))):
                _kept.append(made)
                table.calls[place] = ctypes.cast(made, c_void_p).value
            _kept.append(write)
            self._methods[real] = table
        return self._methods[real]

    def after_a_power_cut(self, folder: Path) -> Path:
        """A folder with what is left."""
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        for name, content in self.synced.items():
            (folder / name).write_bytes(content)
        return folder
