"""Guarantees: the registry, the one that guarantees nothing, and what composes with any of them."""
