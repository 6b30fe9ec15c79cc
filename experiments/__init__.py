"""The papers' figures and tables, run again. One package a paper: `python -m experiments.total`."""
