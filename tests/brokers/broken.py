"""Adapters that are broken in one place each: the contract has to find every one.

Each is the broker of memory with one verb changed; beside it stands a check that fails on it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from inorder.brokers.memory import MemoryBroker
from inorder.brokers.runs import cut
from inorder.core.errors import Refused
from inorder.logs.broker import Author, End, Log, Rows, Run, Stored, Traits
from inorder.logs.topics import EVERYTHING, Topics

BROKEN: dict[str, tuple[type[MemoryBroker], str]] = {}


def breaks(check: str) -> Callable[[type[MemoryBroker]], type[MemoryBroker]]:
    """Say by which check an adapter is found out."""

    def note(made: type[MemoryBroker]) -> type[MemoryBroker]:
        BROKEN[made.__name__] = made, check
        return made

    return note


class Reads(MemoryBroker):
    """Changes what is read."""

    async def read(self, log: Log, offset: int, limit: int, topics: Topics) -> Rows:
        return self.changed(await super().read(log, offset, limit, topics))

    def changed(self, rows: Rows) -> Rows:
        return replace(rows, runs=[self.turned(run) for run in rows.runs])

    def turned(self, run: Run) -> Run:
        return run


class Appends(MemoryBroker):
    """Changes what is stored."""

    async def append(self, log: Log, author: Author, runs_: Sequence[Run]) -> Stored:
        return await super().append(log, author, [self.turned(run) for run in runs_])

    def turned(self, run: Run) -> Run:
        return run


@breaks("what_was_appended_is_read_as_it_was")
class SaysOtherOffsets(MemoryBroker):
    async def append(self, log, author, runs_):
        stored = await super().append(log, author, runs_)
        return Stored([offset + 1 for offset in stored.offsets])


@breaks("what_was_appended_is_read_as_it_was")
class ForgetsKeys(Appends):
    def turned(self, run):
        return replace(run, keys=None)


@breaks("what_was_appended_is_read_as_it_was")
class ForgetsHeaders(Appends):
    def turned(self, run):
        return replace(run, headers=None)


@breaks("what_was_appended_is_read_as_it_was")
class ForgetsThePublishersClock(Appends):
    def turned(self, run):
        return replace(run, published_at=0.0)


@breaks("what_was_appended_is_read_as_it_was")
class HasNoClock(Reads):
    def turned(self, run):
        return replace(run, stored_at=0.0)


@breaks("what_was_appended_is_read_as_it_was")
class LosesTheLastOfARun(Reads):
    def turned(self, run):
        return cut(run, 0, run.count - 1) if run.count > 1 else run


@breaks("one_order_for_every_connection")
class HasAnIdentityOfItsOwn(MemoryBroker):
    async def logs(self, topics):
        (log,) = await super().logs(topics)
        return [replace(log, identity=uuid.uuid4().hex)]


@breaks("one_order_for_every_connection")
class ReadsBackwards(Reads):
    def changed(self, rows):
        return replace(rows, runs=list(reversed(rows.runs)))


@breaks("writers_at_once_lose_and_double_nothing")
class LosesOneOfMany(MemoryBroker):
    async def append(self, log, author, runs_):
        end = self._hub.end
        await asyncio.sleep(0)
        stored = await super().append(log, author, runs_)
        if stored.offsets[0] != end:  # somebody was faster
            self._hub.runs.pop()
        return stored


@breaks("reading_begins_at_any_offset")
class ReadsWholeRuns(MemoryBroker):
    async def read(self, log, offset, limit, topics):
        rows = await super().read(log, offset, limit, topics)
        whole = [next((w for w in self._hub.runs if w.offset + w.count > r.offset >= w.offset), r)
                 for r in rows.runs]  # fmt: skip
        return replace(rows, runs=whole)


@breaks("reading_begins_at_any_offset")
class SaysLessThanWasAsked(Reads):
    def changed(self, rows):
        return replace(rows, upto=min(rows.upto, self._hub.end))


@breaks("reading_stops_at_about_the_limit")
class KnowsNoLimit(MemoryBroker):
    async def read(self, log, offset, limit, topics):
        return await super().read(log, offset, 1 << 40, topics)


@breaks("reading_stops_at_about_the_limit")
class SkipsBehindTheLimit(Reads):
    def changed(self, rows):
        return replace(rows, upto=max(rows.upto, self._hub.end))


@breaks("topics_are_chosen_by_name_and_pattern")
class GivesAllTopics(MemoryBroker):
    async def read(self, log, offset, limit, topics):
        return await super().read(log, offset, limit, EVERYTHING)


@breaks("topics_are_chosen_by_name_and_pattern")
class KeepsBeginningsBack(Reads):
    def changed(self, rows):
        return replace(rows, runs=[run for run in rows.runs if run.count])


@breaks("a_large_append_comes_back_whole")
class KeepsAThousand(MemoryBroker):
    async def append(self, log, author, runs_):
        small = [cut(run, 0, 1000) if run.count > 1000 else run for run in runs_]
        await super().append(log, author, small)
        return Stored(range(self._hub.end, self._hub.end + sum(run.count for run in runs_)))


@breaks("a_large_append_comes_back_whole")
class PromisesTooLargeEvents(MemoryBroker):
    traits = replace(MemoryBroker.traits, event_bytes=MemoryBroker.traits.event_bytes + 1000)

    async def append(self, log, author, runs_):
        if any(len(run.values) > MemoryBroker.traits.event_bytes for run in runs_):
            raise Refused("too large")
        return await super().append(log, author, runs_)


@breaks("runs_of_many_topics_in_one_append")
class StoresThePrefixOnly(MemoryBroker):
    async def append(self, log, author, runs_):
        return await super().append(log, author, runs_[:10])


@breaks("what_is_no_append_is_refused_and_nothing_stored")
class StoresAPrefixOfWhatIsWrong(MemoryBroker):
    async def append(self, log, author, runs_):
        if len(runs_) > 1:
            await super().append(log, author, runs_[:1])
            return await super().append(log, author, runs_[1:])
        return await super().append(log, author, runs_)


@breaks("what_is_no_append_is_refused_and_nothing_stored")
class LooksAtNothing(MemoryBroker):
    async def append(self, log, author, runs_):
        hub = self._hub
        first = hub.end
        self._store(hub, author, runs_ or [Run("t", "p", 1, 1, 1, b"\x91\x01")])
        return Stored(range(first, hub.end))


class Ends(MemoryBroker):
    async def settle(self, logs):
        ends = await super().settle(logs)
        return {name: self.changed(end) for name, end in ends.items()}

    def changed(self, end: End) -> End:
        return end


@breaks("ends_grow_and_cover_receipts")
class EndsTooEarly(Ends):
    def changed(self, end):
        return replace(end, stable=max(end.first, end.stable - 1))


@breaks("ends_grow_and_cover_receipts")
class SaysLessIsWrittenThanStable(Ends):
    def changed(self, end):
        return replace(end, written=end.first)


@breaks("ends_grow_and_cover_receipts")
class AnswersForStrangers(MemoryBroker):
    async def settle(self, logs):
        (end,) = (await super().settle([self._hub.log])).values()
        return {log.identity: end for log in logs}


@breaks("what_is_removed_is_said")
class ForgetsWhereItBegins(Ends):
    def changed(self, end):
        return replace(end, first=1)


@breaks("a_time_is_found")
class FindsTheNextTime(MemoryBroker):
    async def at(self, log, time):
        return min(await super().at(log, time) + 1, self._hub.end)


@breaks("a_time_is_found")
class FindsTheBeginning(MemoryBroker):
    async def at(self, log, time):
        return self._hub.first


@breaks("a_mark_tells_one_past_from_another")
class HasOneMark(MemoryBroker):
    def _mark(self, hub, offset):
        return b"12345678"


@breaks("a_mark_tells_one_past_from_another")
class ChangesItsMarks(MemoryBroker):
    def _mark_of(self, hub, offset):
        return (hub.end * 1000 + offset).to_bytes(8)


@breaks("a_mark_tells_one_past_from_another")
class MarksTheFuture(MemoryBroker):
    async def mark(self, log, offset):
        return self._mark(self._hub, offset) if offset >= self._hub.first else None


@breaks("what_is_removed_is_said")
class MarksWhatIsGone(MemoryBroker):
    async def mark(self, log, offset):
        return b"" if offset > self._hub.end else self._mark(self._hub, offset)


@breaks("a_repeat_is_refused_or_stored")
class StoresRepeats(MemoryBroker):
    async def append(self, log, author, runs_):
        self._hub.authors.note(author, 0)
        return await super().append(log, author, runs_)


@breaks("the_last_sequence_is_right_or_unknown")
class CountsWrong(MemoryBroker):
    async def last(self, log, author):
        return (await super().last(log, author) or 0) + 1


@breaks("the_last_sequence_is_right_or_unknown")
class KnowsNoLast(MemoryBroker):
    async def last(self, log, author):
        return None


@breaks("a_new_life_ends_the_old")
class LetsDeadLivesWrite(MemoryBroker):
    async def append(self, log, author, runs_):
        if self._hub.authors.known(author)[0] > author.epoch:
            return Stored([self._hub.end])
        return await super().append(log, author, runs_)


@breaks("a_new_life_ends_the_old")
class LetsDeadLivesBegin(MemoryBroker):
    async def shut(self, log, author):
        self._hub.authors.note(author, 0)
        return self._hub.end - 1


@breaks("a_new_life_ends_the_old")
class StoresNoBeginning(MemoryBroker):
    async def shut(self, log, author):
        offset = await super().shut(log, author)
        self._hub.runs.pop()
        return offset


@breaks("an_older_life_is_refused_without_a_beginning")
class LooksAtBeginningsOnly(MemoryBroker):
    async def append(self, log, author, runs_):
        if not any(run.count == 0 for run in self._hub.runs):
            self._hub.authors.note(replace(author, epoch=1), 0)
        return await super().append(log, author, runs_)


@breaks("an_erased_event_leaves_a_stub")
class ErasesNothing(MemoryBroker):
    async def erase(self, log, offset):
        return None


@breaks("an_erased_event_leaves_a_stub")
class KeepsTheKeyOfWhatIsErased(MemoryBroker):
    async def erase(self, log, offset):
        keys = {run.offset: (run.keys, run.headers) for run in self._hub.runs}
        await super().erase(log, offset)
        for place, run in enumerate(self._hub.runs):
            kept, headers = keys[run.offset]
            self._hub.runs[place] = replace(run, keys=kept, headers=headers)


@breaks("an_erased_event_leaves_a_stub")
class ErasesWholeRuns(MemoryBroker):
    async def erase(self, log, offset):
        await super().erase(log, offset)
        self._hub.runs = [r for r in self._hub.runs if not r.offset <= offset < r.offset + r.count]


@breaks("an_erased_event_leaves_a_stub")
class ErasesNowhere(MemoryBroker):
    async def erase(self, log, offset):
        if self._hub.first <= offset < self._hub.end:
            await super().erase(log, offset)


@breaks("what_is_removed_is_said")
class KeepsSilentOfWhatIsRemoved(Reads):
    def changed(self, rows):
        return replace(rows, removed=())


@breaks("what_is_removed_is_said")
class RemovesNothing(MemoryBroker):
    async def remove(self, log, below):
        return None


@breaks("what_is_removed_is_said")
class RemovesOneMore(MemoryBroker):
    async def remove(self, log, below):
        await super().remove(log, below + 1)


@breaks("who_waits_is_woken")
class WakesNobody(MemoryBroker):
    def _ring(self, hub):
        return None


@breaks("who_knows_less_does_not_wait")
class WaitsInAnyCase(MemoryBroker):
    async def moved(self, ends, timeout):
        await asyncio.sleep(timeout)


@breaks("who_knows_less_does_not_wait")
class WaitsForEver(MemoryBroker):
    async def moved(self, ends, timeout):
        if not self._hub.end > ends.get(self._hub.log.identity, self._hub.end):
            await asyncio.sleep(1000)


@breaks("what_is_stored_outlives_a_connection")
class GoesOnWhenClosed(MemoryBroker):
    async def close(self):
        return None


@breaks("what_is_stored_outlives_a_connection")
class TakesItAllAlong(MemoryBroker):
    async def close(self):
        if self._hub_or_none:
            self._hub_or_none.runs.clear()
        await super().close()


@breaks("what_is_stored_outlives_all_connections")
class SaysThatOthersShare(MemoryBroker):
    traits = replace(MemoryBroker.traits, shares=True)


@breaks("figures_for_people")
class CountsRuns(MemoryBroker):
    async def status(self):
        return {**await super().status(), "topics": {"t": len(self._hub.runs)}}


# Coordinators.


@breaks("the_value_that_stands_is_the_answer")
class AnswersWithMine(MemoryBroker):
    async def append_if(self, key, number, value):
        await super().append_if(key, number, value)
        return value


@breaks("the_value_that_stands_is_the_answer")
class LeavesHoles(MemoryBroker):
    async def append_if(self, key, number, value):
        while await self.final(key) < number - 1:
            await super().append_if(key, await self.final(key) + 1, b"")
        return await super().append_if(key, number, value)


@breaks("the_value_that_stands_is_the_answer")
class ReadsOneTooFew(MemoryBroker):
    async def read_from(self, key, number):
        return await super().read_from(key, number + 1)


@breaks("one_of_many_wins")
class LooksBeforeItWrites(MemoryBroker):
    async def append_if(self, key, number, value):
        stands = await self.read_from(key, number)
        await asyncio.sleep(0)
        if stands:
            return stands[0][1]
        below, values = self._hub.sequences.get(key, (0, []))
        self._hub.sequences[key] = below, [*values[: number - 1], value]
        return value


@breaks("what_is_forgotten_is_not_given_again")
class CountsFromOneAgain(MemoryBroker):
    async def forget(self, key, below):
        await super().forget(key, below)
        if key in self._hub.sequences and not self._hub.sequences[key][1]:
            del self._hub.sequences[key]


@breaks("what_is_forgotten_is_not_given_again")
class ForgetsOneMore(MemoryBroker):
    async def forget(self, key, below):
        await super().forget(key, below + 1)


@breaks("a_value_is_overwritten_by_its_epoch")
class KnowsNoEpochs(MemoryBroker):
    async def put(self, key, value, epoch, durable=True):
        self._hub.values[key] = value, epoch


@breaks("a_value_is_overwritten_by_its_epoch")
class WantsLargerEpochs(MemoryBroker):
    async def put(self, key, value, epoch, durable=True):
        if self._hub.values.get(key, (b"", 0))[1] < epoch:
            await super().put(key, value, epoch)


@breaks("keys_and_drop")
class DropsNothing(MemoryBroker):
    async def drop(self, key):
        return None


@breaks("keys_and_drop")
class KnowsSequencesOnly(MemoryBroker):
    async def keys(self, prefix):
        return sorted(key for key in self._hub.sequences if key.startswith(prefix))


@breaks("facts_outlive_connections")
class SaysThatFactsStay(MemoryBroker):
    traits = Traits(
        wakes=True, refuses_repeats=True, atomic=True, shares=True, durable=False,
        event_bytes=MemoryBroker.traits.event_bytes,
    )  # fmt: skip
