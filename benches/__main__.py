"""All benches, one after the other: `make bench`."""

from __future__ import annotations

from benches import (
    audit,
    bus,
    content,
    cube,
    fifo,
    match,
    order,
    ranking,
    session,
    simulator,
    source,
    total,
    worlds,
)


def main() -> None:
    simulator.main()
    worlds.main()
    total.main()
    fifo.main()
    content.main()
    audit.main()
    bus.main()
    source.main()
    match.main()
    order.main()
    ranking.main()
    session.main()
    cube.main()


if __name__ == "__main__":
    main()
