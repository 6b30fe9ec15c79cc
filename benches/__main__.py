"""All benches, one after the other: `make bench`."""

from __future__ import annotations

from benches import audit, content, fifo, simulator, total


def main() -> None:
    simulator.main()
    total.main()
    fifo.main()
    content.main()
    audit.main()


if __name__ == "__main__":
    main()
