"""Spark looks for a `DefaultSource` in packages named pyspark_*: here it finds `inorder`."""

from inorder.pipeline.source import DefaultSource

__all__ = ["DefaultSource"]
