"""Subscription parameters as the fields of a class: assigning a field moves the subscription.

Rule 1: one assignment is one update; all assignments inside `with monitor.together():` are one.
Rule 2: an update is all or nothing. A value of the wrong kind, or a block that ends with an
        exception, changes nothing and sends nothing.
Rule 3: assignments may come from any thread. A block keeps the others out until it has ended.

The idea is the paper's ("Parametric Subscriptions for Content-Based Publish/Subscribe Networks",
section 3.4): the variables of a subscription are fields of the application, and the middleware
notices when they change. Here the class names its predicate, and each `:parameter` of it is an
annotated field:

>>> class StockMonitor(Parameters, topics=("quotes",), where="firm = :firm AND price < :limit"):
...     firm: str
...     limit: float = 10.0
>>> monitor = StockMonitor(firm="IBM")
>>> monitor.attach(lambda values: print("update", values))
>>> monitor.limit = 12.5
update {'limit': 12.5}
>>> with monitor.together():
...     monitor.firm = "Sun"
...     monitor.limit = 9.5
update {'firm': 'Sun', 'limit': 9.5}
>>> monitor.limit = 9.5  # nothing changes, nothing is sent
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar, get_type_hints

from inorder.content.predicate import Predicate
from inorder.core.errors import Misuse

Send = Callable[[dict[str, Any]], Any]


class Parameters:
    """Derive from it, name `where` and `topics`, and annotate one field for each parameter."""

    topics: ClassVar[tuple[str, ...]]
    where: ClassVar[str]
    _predicate: ClassVar[Predicate]

    def __init_subclass__(cls, *, where: str, topics: tuple[str, ...] = (), **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.where = where
        cls.topics = topics
        cls._predicate = Predicate.parse(where)
        used = {use.name for use in cls._predicate.parameters}
        fields = {name for name in _fields(cls) if not name.startswith("_")}
        if missing := sorted(used - fields):
            raise Misuse(f"{cls.__name__} has no field for :{', :'.join(missing)}")
        if idle := sorted(fields - used):
            raise Misuse(f"{cls.__name__}.{', '.join(idle)}: no such parameter in {where!r}")

    def __init__(self, **values: Any) -> None:
        names = [use.name for use in self._predicate.parameters]
        defaults = {name: getattr(type(self), name) for name in names if hasattr(type(self), name)}
        checked = self._predicate.check({**defaults, **values})
        state = object.__setattr__
        state(self, "_lock", RLock())
        state(self, "_values", checked)
        state(self, "_send", None)
        state(self, "_block", None)
        for name, value in checked.items():
            state(self, name, value)

    def attach(self, send: Send | None) -> None:
        """`send` is called with what changed, in the thread that changed it.

        If it raises, the fields keep their former values.
        """
        with self._lock:
            object.__setattr__(self, "_send", send)

    @property
    def values(self) -> dict[str, Any]:
        """All parameters as they are now."""
        with self._lock:
            return dict(self._values)

    def __setattr__(self, name: str, value: Any) -> None:
        with self._lock:
            block = self._block
            if block is None:
                self._change({name: value})
            else:
                # Checked at once, so that the traceback points at the assignment.
                self._predicate.check({**block, name: value}, self._values)
                block[name] = value
                object.__setattr__(self, name, value)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All assignments inside are one update."""
        with self._lock:
            if self._block is not None:
                yield  # a block within a block belongs to the outer one
                return
            block: dict[str, Any] = {}
            object.__setattr__(self, "_block", block)
            try:
                yield
                object.__setattr__(self, "_block", None)
                self._change(block)
            except BaseException:
                object.__setattr__(self, "_block", None)
                self._show(self._values)
                raise

    def _change(self, values: Mapping[str, Any]) -> None:
        checked = self._predicate.check(values, self._values)
        changed = {name: checked[name] for name in values if checked[name] != self._values[name]}
        if changed and self._send is not None:
            self._send(changed)
        object.__setattr__(self, "_values", checked)
        self._show(checked)

    def _show(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # For type checkers; set in __init__.
    _lock: RLock
    _values: dict[str, Any]
    _send: Send | None
    _block: dict[str, Any] | None


def _fields(cls: type[Parameters]) -> list[str]:
    """Annotated names of the class and its bases, down to this one."""
    found: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        if base is not Parameters and issubclass(base, Parameters):
            for name in get_type_hints(base):
                if name not in Parameters.__annotations__:
                    found[name] = None
    return list(found)
