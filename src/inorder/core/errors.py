"""Every exception inorder raises.

Two families, because the cure differs: `Misuse` means the caller asked for something it must not
ask for; `PeerFault` means another machine, a file or a peer sent something it must not send. Errors
carry their numbers as attributes, so that a caller can act on them without parsing text.
"""

from __future__ import annotations


class InorderError(Exception):
    """The root of all our exceptions."""


class Misuse(InorderError):
    """The caller broke the contract: fix the call."""


class PeerFault(InorderError):
    """Something that came from outside broke the contract: refuse it, keep running."""


class TooLarge(Misuse):
    """A bound of `limits.py` was exceeded."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} is {size}, the limit is {limit}")
        self.what = what
        self.size = size
        self.limit = limit


class UnknownName(Misuse):
    """A name is not one of the names that exist."""

    def __init__(self, what: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {what} {name!r}; known: {', '.join(known) or 'none'}")
        self.what = what
        self.name = name
        self.known = known


class BadScenario(Misuse):
    """A scenario file says something impossible; `key` is the dotted path of the culprit."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem


class PredicateError(Misuse, ValueError):
    """A predicate, or a value for it, that cannot be used.

    `code` says which rule it broke, `column` where (from 1; None when it is about no one place) and
    `text` is the predicate the column points into.
    """

    def __init__(self, code: str, problem: str, column: int | None = None, text: str = "") -> None:
        place = "" if column is None else f"column {column}: "
        super().__init__(f"{code}: {place}{problem}")
        self.code = code
        self.problem = problem
        self.column = column
        self.text = text


class MissingPart(Misuse):
    """An optional part is not installed."""

    def __init__(self, part: str, extra: str, instead: str = "") -> None:
        hint = f" ({instead})" if instead else ""
        super().__init__(f"{part} is not installed: pip install 'inorder[{extra}]'{hint}")
        self.part = part
        self.extra = extra


class BadFrame(PeerFault):
    """Bytes that are not a message of ours."""


class BadMessage(PeerFault):
    """A well-formed message that contradicts what this machine knows; `source` sent it."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"from {source}: {problem}")
        self.source = source
        self.problem = problem


class BadTrace(PeerFault):
    """A trace or delivery log that cannot be read or judged; names the file and the culprit."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class Damaged(PeerFault):
    """A file whose content cannot be what was written; names the file and the place.

    `start` and `upto` are the offsets from which on and below which a log is damaged; reading may
    go on at `upto`. None: there is no going on.
    """

    def __init__(
        self, path: str, problem: str, start: int | None = None, upto: int | None = None
    ) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem
        self.start = start
        self.upto = upto


class Removed(PeerFault):
    """Events of a log are gone: those from offset `start` on, below `upto`. Reading goes on
    there."""

    def __init__(self, start: int, upto: int) -> None:
        super().__init__(f"the events from offset {start} to {upto - 1} were removed")
        self.start = start
        self.upto = upto


class BadValue(PeerFault):
    """An event's value is not of the type that its subscription asks for."""


class BadOption(Misuse):
    """An option that means nothing here; `option` is its name."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option {option!r}: {problem}")
        self.option = option
        self.problem = problem


class Refused(InorderError):
    """What was asked for did not happen, and will not."""


class Unsure(InorderError):
    """Whether what was asked for happened is not known: it may have, or may yet."""


class Replaced(InorderError):
    """A machine has another owner meanwhile; whoever held `token` must stop speaking for it."""

    def __init__(self, node: str, token: int) -> None:
        super().__init__(f"{node}: another process has taken over (our token was {token})")
        self.node = node
        self.token = token
