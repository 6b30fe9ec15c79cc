"""The vocabulary: what every other room speaks in. It imports none of them."""
