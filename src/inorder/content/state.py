"""States with numbers as keys, as bytes: `pack` sorts keys, and sorts only texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from inorder.core.pack import pack


def pack_state(state: Any) -> bytes:
    """
    >>> pack_state({2: "b", 1: "a"}) == pack_state({1: "a", 2: "b"})
    True
    """
    return pack(msgspec.to_builtins(state, str_keys=True))


def state_unpacker(kind: Any) -> Callable[[bytes], Any]:
    """
    >>> state_unpacker(dict[int, str])(pack_state({2: "b", 1: "a"}))
    {1: 'a', 2: 'b'}
    """

    def unpack(data: bytes) -> Any:
        return msgspec.convert(msgspec.msgpack.decode(data), kind, str_keys=True)

    return unpack
