"""Order over logs: what keeps events has an order of its own."""
