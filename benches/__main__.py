"""All benches, one after the other: `make bench`."""

from __future__ import annotations

from benches import audit, fifo, simulator, total


def main() -> None:
    simulator.main()
    total.main()
    fifo.main()
    audit.main()


if __name__ == "__main__":
    main()
