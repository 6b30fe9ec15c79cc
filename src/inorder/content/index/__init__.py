"""The fast engine: which subscriptions does an event match, out of very many?

`Index` is its face. A subscription is a row for each of its forms; the forms of one skeleton are a
block; a block hashes the values of equalities and sets, and keeps the ends of ranges as floats, in
ladders, columns and grids. What floats cannot say, boxes decide. NumPy is loaded when there is use
for it, and without it all but batches work.
"""

from __future__ import annotations

from inorder.content.index.index import Index

__all__ = ["Index"]
