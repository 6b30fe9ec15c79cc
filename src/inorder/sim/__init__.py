"""The deterministic driver: virtual time, seeded networks and faults, exploration."""
