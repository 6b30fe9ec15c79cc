"""Peers on a hypercube: every publisher is the root of a tree of its own."""
