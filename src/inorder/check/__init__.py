"""Judges: a history in, a verdict out. One file a promise."""
