"""The cluster, for every test of this folder."""

from __future__ import annotations

from tests.cluster.cluster import cluster

__all__ = ["cluster"]
