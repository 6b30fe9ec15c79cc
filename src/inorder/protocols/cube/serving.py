"""What applications ask for, in order; and publications, on their way out and in.

An application joins `chat`, publishes twice and leaves. The first call is served at once; the
publications wait until the peer is in, and leaving waits until everybody has acknowledged them.

Rule 1: calls of one topic are served one after the other, as soon as the first can be.
Rule 2: a publication is made when it is launched: stamped, numbered and sent in the same step.
Rule 3: nothing is served while the living agree on who is dead (flush.py).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

from inorder.core.effect import Answer, Diffuse, Launched, Note
from inorder.core.errors import BadMessage, InorderError
from inorder.core.machine import Client
from inorder.core.member import SEQ_BLOCK
from inorder.protocols.cube.messages import GONE, KEPT, MEMBER, PUB, SOURCE, SUB, UNS, Pub
from inorder.protocols.cube.surviving import Surviving
from inorder.protocols.cube.topic import Enter, Exit, Publish, Topic
from inorder.protocols.cube.wave import Key, Wave


class Serving(Surviving):
    """The part of a peer that its application and its publications go through."""

    # What the peer does with it.

    @abstractmethod
    def _tell_joined(self, name: str, topic: Topic, now: float) -> None:
        """Tell the machine inside that this peer is in."""

    @abstractmethod
    def _is_wanted(self, topic: Topic) -> None:
        """The application wants this membership, as far as it is known."""

    # Publications.

    def _on_pub(self, parent: int, pub: Pub[Any], now: float) -> None:
        self._check_source(parent, pub.source, pub.number)
        watched = self._detector is not None
        if watched and self._is_fenced(pub.source, pub.life, now):
            return
        self._trees.pass_pub(parent, pub)
        topic = self._topics.get(pub.topic)
        if topic is None or topic.role != MEMBER or (topic.phase != "in" and not topic.answers):
            self._figures["relays"] += 1
            return  # on the way only: a peer that is not in helps all the same
        if watched:
            topic.remains.is_stable(pub.source, pub.stable)
        self._take_in(parent, topic, pub, now)

    def _take_in(self, parent: int, topic: Topic, pub: Pub[Any], now: float) -> None:
        """A publication has come to a member."""
        if topic.phase != "in":
            topic.early.append((parent, pub))
        elif topic.come(pub.source, pub.number):
            if self._trees.bundler is not None:
                self._trees.bundler.came(pub.topic, pub.source)
            self._hand_in(topic, pub, now)
        else:
            self._out.append(Note("duplicate", f"{pub.topic}/{pub.source}:{pub.number}"))

    def _hand_in(self, topic: Topic, pub: Pub[Any], now: float) -> None:
        """A publication addressed to this membership, for the first time."""
        if self._detector is not None:
            topic.remains.keep(pub.source, pub.number, pub.body, self.options.window)
        if not topic.wanted:
            return  # the application has left; the peer has not yet
        source = self._names[pub.source]
        try:
            if self._placing is not None:
                place = ((pub.topic, pub.source), pub.number)
                self._pass(self._placing.placed(place, source, pub.body, now), now)
            elif 0 < topic.counts[pub.source] <= pub.number:
                self._pass(self.inner.receive(source, pub.body, now), now)
        except BadMessage:
            # It has come and goes on to others all the same: what is in it is not for this network.
            self._out.append(Note("bad_frame", source))

    def _spread(self, name: str, topic: Topic, message: Any, answer: Answer | None) -> int:
        """Send a message of this peer's to all members; its number."""
        number = topic.next
        topic.next += 1
        if number > topic.reserved:
            topic.reserved = number + SEQ_BLOCK - 1
            self._write(name, topic)
        topic.outstanding += 1
        pub = Pub(name, self._me, number, b"", message)
        if self._detector is not None:
            stable = topic.remains.stable(number)
            topic.remains.unacked[number] = True
            pub = Pub(name, self._me, number, b"", message, self.life, stable)
        self._trees.launch((PUB, name, self._me, number), pub, topic.members, answer)
        return number

    def _hand_back(self, name: str, topic: Topic, number: int, message: Any, now: float) -> None:
        """What this peer has spread reaches its own machine, too."""
        if topic.role == MEMBER:
            topic.have[self._me] = number
        if self._placing is not None:
            self._pass(
                self._placing.placed(((name, self._me), number), self.name, message, now), now
            )
        elif topic.role == MEMBER and topic.wanted:
            self._pass(self.inner.receive(self.name, message, now), now)

    # Calls, one after the other.

    def _serve(self, name: str, topic: Topic, now: float) -> None:
        """Do what can be done of what waits, in order; nothing is launched during a flush."""
        calls = topic.calls
        while calls and not self._flushing:
            call = calls[0]
            if isinstance(call, Enter):
                if topic.phase == "in" and topic.role == MEMBER:
                    calls.popleft()  # preset, or a source that has become a member meanwhile
                    if call.role == MEMBER:
                        self._is_wanted(topic)
                        self._tell_joined(name, topic, now)
                elif topic.phase in ("out", "in"):
                    calls.popleft()
                    if call.role == MEMBER:
                        self._is_wanted(topic)
                    self._enter(name, topic, call.role, now)
                else:
                    return
            elif isinstance(call, Exit):
                if topic.phase != "in" or topic.outstanding:
                    return
                calls.popleft()
                self._leave(name, topic, now)
            elif topic.phase == "out":
                calls.appendleft(Enter(SOURCE))
            elif self._may_launch(topic):
                calls.popleft()
                if isinstance(call, Publish):
                    self._launch(name, topic, call, now)
                else:
                    number = self._spread(name, topic, call.message, None)
                    self._hand_back(name, topic, number, call.message, now)
                    self._settle(name, topic, number, now)
            else:
                return

    def _may_launch(self, topic: Topic) -> bool:
        """Whether what this peer publishes on a topic may be launched now."""
        if self._detector is not None and topic.outstanding:
            # What others keep until it is stable, all numbers behind one that is not, has a bound.
            behind = topic.next - topic.remains.stable(topic.next)
            return topic.phase == "in" and behind <= self.options.window
        return topic.phase == "in" and topic.outstanding < self.options.window

    def _launch(self, name: str, topic: Topic, call: Publish, now: float) -> None:
        """Now the publication is made: stamped, and sent in the same step."""
        try:
            effects = cast(Client, self.inner).publish(name, call.value, now)
        except InorderError as error:
            self._out.append(Answer(call.call, "refused", str(error)))
            return
        messages = [each.message for each in effects if isinstance(each, Diffuse)]
        assert len(messages) == 1, "a client that launches diffuses each publication once"
        event = messages[0].event
        accepted = Answer(event.id, "accepted")
        self._out.append(Launched(call.call, event))
        self._pass(
            [each for each in effects if not isinstance(each, Diffuse) and each != accepted], now
        )
        number = self._spread(name, topic, messages[0], accepted)
        self._hand_back(name, topic, number, messages[0], now)
        self._settle(name, topic, number, now)

    def _settle(self, name: str, topic: Topic, number: int, now: float) -> None:
        """A wave that goes to nobody is over at once."""
        key = (PUB, name, self._me, number)
        wave = self._trees.over(key)
        if wave is not None:
            self._complete(key, wave, now)

    def _complete(self, key: Key, wave: Wave[Any], now: float) -> None:
        """A wave of this peer's has reached everybody."""
        kind, name, _, number = key
        topic = self._topics[name]
        if kind == PUB:
            topic.outstanding -= 1
            if self._detector is not None:
                del topic.remains.unacked[number]
            if wave.answer is not None:
                self._is_acknowledged(key, wave.answer)
        elif kind == KEPT or number != topic.change:
            return
        elif kind == SUB:
            self._is_known(name, topic, wave.standings, now)
        elif kind == UNS:
            topic.phase, topic.role = "out", GONE
            topic.forget()
        else:
            self._is_in(name, topic, wave.standings, now)
        self._serve(name, topic, now)
