"""Where a subscription begins: from what was asked for to "done up to and with this position"."""

from __future__ import annotations

from datetime import datetime

from inorder.bus.opening import Start
from inorder.core.errors import Misuse
from inorder.logs.broker import Broker, End, Log
from inorder.logs.cursor import Cursor, parse


async def ended(broker: Broker, log: Log) -> End:
    """The log's end as it is now."""
    return (await broker.settle([log]))[log.identity]


async def position_before(broker: Broker, log: Log, start: Start) -> int:
    """The position that counts as done when a subscription begins there."""
    if isinstance(start, bool):
        raise Misuse(f"start={start!r}: it is latest, earliest, a position, a cursor or a datetime")
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise Misuse(f"start={start!r} has no time zone: use an aware datetime")
        return await broker.at(log, start.timestamp()) - 1
    end = await ended(broker, log)
    if start == "latest":
        return end.stable - 1
    if start == "earliest":
        return end.first - 1
    if isinstance(start, int):
        return _checked(start, end, log)
    if isinstance(start, str):
        return await gone_on(broker, log, parse(start), end)
    raise Misuse(f"start={start!r}: it is latest, earliest, a position, a cursor or a datetime")


async def gone_on(broker: Broker, log: Log, cursor: Cursor, end: End) -> int:
    """The position of a cursor, if this log is still the one it was made for."""
    if cursor.order != log.identity:
        raise Misuse(f"the cursor is of another log than {log.name}")
    position = _checked(cursor.position, end, log)
    mark = await broker.mark(log, position + 1)
    if cursor.digest and mark is not None and mark != cursor.digest:
        raise Misuse(
            f"{log.name} has lost its tail: at position {position} stands another event than the "
            "one this cursor was made for"
        )
    return position


def _checked(position: int, end: End, log: Log) -> int:
    if position < -1:
        raise Misuse(f"start={position}: a position is a number from 0 on")
    if position >= end.stable:
        last = f"its last is {end.stable - 1}" if end.stable else "it is empty"
        raise Misuse(f"{log.name} has no position {position}: {last}")
    return position
