"""The Spark driver: the stages of a pipeline, and the promises over tables of any size.

The functions people use are here, each from the file that is named after its stage.

>>> from inorder import pipeline
>>> pipeline.order.__module__
'inorder.pipeline.order_stage'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inorder.pipeline.fit_stage import fit
    from inorder.pipeline.match_stage import match
    from inorder.pipeline.order_stage import order
    from inorder.pipeline.sequence_stage import sequence

__all__ = ["fit", "match", "order", "sequence"]


def __getattr__(name: str) -> Any:
    """A stage is loaded when it is asked for: nobody pays for Spark who does not use it."""
    if name not in __all__:
        raise AttributeError(f"module 'inorder.pipeline' has no attribute {name!r}")
    return getattr(import_module(f"inorder.pipeline.{name}_stage"), name)
