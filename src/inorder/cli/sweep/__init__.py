"""Sweeps: a grid of scenarios, each with many seeds, simulated on Spark (plan.py)."""
