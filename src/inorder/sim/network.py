"""The simulated event network: who gets what, when, and how often.

A *model* (sim/models.py) says when a message would arrive; the *weather* (loss, duplication,
reordering, partitions) says whether it does. Every sender draws from a random stream of its own,
so removing a node from a run does not change what the others draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Protocol, runtime_checkable

from inorder.core import wire
from inorder.sim.agenda import Agenda


class Model(Protocol):
    """When a message arrives at another host."""

    # Whether `arrival` looks at the size: measuring it costs an encoding per message.
    sized: bool

    def arrival(self, source: str, target: str, size: int, now: float, rng: Random) -> float:
        """The time of arrival; `source` and `target` are hosts and differ."""


@runtime_checkable
class Reading(Protocol):
    """A model that reads the messages it delays, to count them or to know them again."""

    def show(self, message: Any) -> None:
        """The message that the next `arrival` is about; hops on `ways` are not shown."""


Cut = tuple[frozenset[str], frozenset[str]]


class Weather:
    """What goes wrong between hosts, at the moment."""

    def __init__(self) -> None:
        # Partitions in force: messages from a node of the first side to one of the second vanish.
        self.cuts: list[Cut] = []
        self.blow()

    def blow(
        self, loss: float = 0.0, duplicate: float = 0.0, reorder: float = 0.0, mean_s: float = 0.0
    ) -> None:
        """Change the probabilities; without arguments the wind drops."""
        self.loss = loss
        self.duplicate = duplicate
        self.reorder = reorder
        self.reorder_mean_s = mean_s
        self._look()

    def cut(self, cuts: Iterable[Cut]) -> None:
        self.cuts.extend(cuts)
        self._look()

    def mend(self, cuts: Iterable[Cut]) -> None:
        for cut in cuts:
            if cut in self.cuts:
                self.cuts.remove(cut)
        self._look()

    def heal(self) -> None:
        self.cuts = []
        self.blow()

    def _look(self) -> None:
        # Asked for every message, so it is kept and not computed.
        self.fair = not (self.loss or self.duplicate or self.reorder or self.cuts)

    def parted(self, source: str, target: str) -> bool:
        return any(source in one and target in other for one, other in self.cuts)


HandOver = Callable[[str, str, Any, int, float, bool], None]

# Who sends to whom, what, how large, since when: a `HandOver` but for whether it arrives.
Parcel = tuple[str, str, Any, int, float]


class Ways(Protocol):
    """How messages travel when there is no link between any two nodes: see sim/overlay.py."""

    def send(self, parcel: Parcel) -> None: ...

    def diffuse(self, topic: str, parcel: Parcel) -> None: ...

    def join(self, node: str, topic: str) -> None: ...

    def leave(self, node: str, topic: str) -> None: ...

    def sides(self, nodes: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]: ...


class Network:
    """Moves messages between nodes, one copy per destination: directly, or on given `ways`."""

    def __init__(
        self,
        agenda: Agenda,
        model: Model,
        seed: str,
        hand_over: HandOver,
        *,
        fifo: bool,
        measure: bool = False,
        hosts: dict[str, str] | None = None,
    ) -> None:
        self.weather = Weather()
        self.members: dict[str, dict[str, None]] = {}
        self.ways: Ways | None = None
        self._agenda = agenda
        self._model = model
        self._seed = seed
        self._hand_over = hand_over
        self._fifo = fifo
        self._measure = measure or model.sized
        # Asked for every message: a model that reads none costs nothing here.
        self._show = model.show if isinstance(model, Reading) else None
        self._post = self._post_shown if self._show else self._post_fair
        self._hosts = hosts or {}
        self._rngs: dict[str, Random] = {}
        self._last_arrival: dict[tuple[str, str], float] = {}

    def send(self, source: str, target: str, message: Any) -> None:
        size = wire.size(message) if self._measure else 0
        if self.ways:
            self.ways.send((source, target, message, size, self._agenda.now))
        else:
            self._send(source, target, message, size)

    def diffuse(self, source: str, topic: str, message: Any) -> None:
        members = self.members.get(topic)
        if members:
            size = wire.size(message) if self._measure else 0
            if self.ways:
                self.ways.diffuse(topic, (source, "", message, size, self._agenda.now))
                return
            for target in members:
                self._send(source, target, message, size)

    def join(self, node: str, topic: str) -> None:
        self.members.setdefault(topic, {})[node] = None
        if self.ways:
            self.ways.join(node, topic)

    def leave(self, node: str, topic: str) -> None:
        self.members.get(topic, {}).pop(node, None)
        if self.ways:
            self.ways.leave(node, topic)

    # For those who carry a message over several links.

    def hop(
        self, source: str, target: str, size: int, then: Callable[..., None], *args: Any
    ) -> bool:
        """One link: `then(*args)` on arrival; returns whether it will arrive at all."""
        rng = self._rngs.get(source) or self.rng(source)
        arrival = self._arrival(source, target, size, rng)
        if not self.weather.fair and source != target:
            arrival = self._through_weather(source, target, arrival, rng, then, args)
        elif self._fifo:
            arrival = self._behind_earlier(source, target, arrival)
        if arrival < 0.0:
            return False
        self._agenda.at(arrival, then, *args)
        return True

    def arrive(self, parcel: Parcel) -> None:
        """Hand it over, behind whatever the sender is in the middle of."""
        self._agenda.at(self._agenda.now, self._hand_over, *parcel, True)

    def lose(self, parcel: Parcel) -> None:
        self._hand_over(*parcel, False)

    def rng(self, source: str) -> Random:
        """The random stream of one sender; a string seed gives the same stream everywhere."""
        rng = self._rngs.get(source)
        if rng is None:
            rng = self._rngs[source] = Random(f"{self._seed}/{source}")
        return rng

    def _send(self, source: str, target: str, message: Any, size: int) -> None:
        if self.weather.fair:
            self._post(source, target, message, size)
            return
        if self._show:
            self._show(message)
        parcel = (source, target, message, size, self._agenda.now)
        if not self.hop(source, target, size, self._hand_over, *parcel, True):
            self._hand_over(*parcel, False)

    def _post_shown(self, source: str, target: str, message: Any, size: int) -> None:
        assert self._show
        self._show(message)
        self._post_fair(source, target, message, size)

    def _post_fair(self, source: str, target: str, message: Any, size: int) -> None:
        """A `hop` in fair weather, which nearly all are, in one piece: this is the hot path."""
        now = self._agenda.now
        hosts = self._hosts
        from_host, to_host = source, target
        if hosts:
            from_host, to_host = hosts.get(source, source), hosts.get(target, target)
        if from_host == to_host:
            arrival = now
        else:
            rng = self._rngs.get(source) or self.rng(source)
            arrival = self._model.arrival(from_host, to_host, size, now, rng)
        if self._fifo:
            link = (source, target)
            if arrival < self._last_arrival.get(link, 0.0):
                arrival = self._last_arrival[link]
            self._last_arrival[link] = arrival
        self._agenda.at(arrival, self._hand_over, source, target, message, size, now, True)

    def _arrival(self, source: str, target: str, size: int, rng: Random) -> float:
        hosts = self._hosts
        from_host = hosts.get(source, source)
        to_host = hosts.get(target, target)
        now = self._agenda.now
        if from_host == to_host:
            return now
        return self._model.arrival(from_host, to_host, size, now, rng)

    def _behind_earlier(self, source: str, target: str, arrival: float) -> float:
        link = (source, target)
        last = self._last_arrival.get(link, 0.0)
        if arrival < last:
            arrival = last
        self._last_arrival[link] = arrival
        return arrival

    def _through_weather(
        self,
        source: str,
        target: str,
        arrival: float,
        rng: Random,
        then: Callable[..., None],
        args: tuple[Any, ...],
    ) -> float:
        """The arrival in bad weather, or -1 for a message that never arrives."""
        weather = self.weather
        # Draw all four always: switching one fault off must not shift the others' draws.
        lost, doubled, late, extra = (rng.random() for _ in range(4))
        if lost < weather.loss or weather.parted(source, target):
            return -1.0
        if doubled < weather.duplicate:
            again = arrival + extra * (arrival - self._agenda.now)
            self._agenda.at(again, then, *args)
        if late < weather.reorder:
            return arrival + extra * 2.0 * weather.reorder_mean_s
        return self._behind_earlier(source, target, arrival) if self._fifo else arrival
