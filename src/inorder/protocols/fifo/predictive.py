"""The default estimator: predict the delay, and remember how wrong the predictions were.

Theory. Let d be an event's arrival minus its departure; the unknown offset between the two clocks
cancels, because a deadline is a departure plus such a difference. The level is the mean of the last
M delays, and M in 1, 2, 4, ..., 32 is the one that predicted best lately: short under congestion,
long in a stable network. The residual e = d - level, taken before d is known to the level, goes
into a window as e / scale. If the next residual is as good as any of the last n (exchangeable), it
exceeds the ceil((n + 1)(1 - P))-th smallest with probability at most P: the conformal rank. An
event can only be late if it exceeds it, so **P is the share of events that come late**, which is
what a user understands.

`adapt` corrects P itself after every event (adaptive conformal inference): up a little when it was
in time, down a lot when it was late, balanced at the target. The long-run share then is the target,
whatever the delays do.

Rule 1: samples are only taken down, and learnt when a deadline or a gauge is asked for: a stream
        that keeps its order costs nothing. Of a long backlog the newest are learnt; the older ones
        would have left the window, and their weight in scale and errors is below 1e-6.
Rule 2: a residual beyond 20 scales and a second is put aside. Three in a row that agree are a clock
        step: the level moves, window and scale stay. Eight in a row that do not are real.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from math import ceil, exp, inf, log
from typing import Self

from msgspec import Struct, field

from inorder.protocols.fifo.options import Options

MEMORIES = (1, 2, 4, 8, 16, 32)
# A better memory must be this much better before it takes over.
SWITCH = 0.97
# A residual counts at most this many scales, so that one outlier does not blow the scale up.
CLIP = 20.0
# So many residuals make the first scale.
FIRST = 16
# Departures have microseconds: a scale below is noise of rounding, and must not be divided by.
SCALE_MIN = 1e-6
# Put aside at least beyond this: a network may well be late by less.
STEP_MIN_S = 1.0
STEP_AGREE = 3
STEP_GIVE_UP = 8
# Bounds of a share that adapts; a target below the lower one is the bound itself.
SHARE_MIN, SHARE_MAX = 1e-4, 0.5
# A backlog twice as long is cut to half; to no less than two windows, either.
BACKLOG = 1024


class Predictive(Struct):
    target: float
    window: int
    min_samples: int
    adapt: bool
    # The share aimed at now; the target itself unless it adapts.
    share: float
    samples: int = 0
    stepped: int = 0
    scale: float = 0.0
    # Delays of the last events, oldest first, and their mean over the best memory.
    last: list[float] = []
    level: float = 0.0
    memory: int = 0
    errors: list[float] = field(default_factory=lambda: [0.0] * len(MEMORIES))
    # Residuals in scales: in order of arrival, and sorted.
    residuals: list[float] = []
    ranked: list[float] = []
    aside: list[float] = []
    # The first residuals of all, in seconds.
    first: list[float] = []
    # Delays not learnt yet, the last one of all, and how many more to learn at once.
    backlog: list[float] = []
    previous: float = 0.0
    watch: int = 0

    @classmethod
    def from_options(cls, options: Options) -> Self:
        return cls(
            options.late, options.window or 500, options.min_samples, options.adapt, options.late
        )

    @property
    def warm(self) -> bool:
        self._catch_up()
        return self.samples >= self.min_samples and bool(self.residuals)

    @property
    def steps(self) -> int:
        self._catch_up()
        return self.stepped

    def sample(self, departure_s: float, arrived_s: float) -> None:
        backlog = self.backlog
        delay = arrived_s - departure_s
        if abs(delay - self.previous) > STEP_MIN_S:
            self.watch = STEP_GIVE_UP
        self.previous = delay
        backlog.append(delay)
        if self.watch:
            # It may be a clock step: look at once, so that none is overlooked in the backlog.
            self.watch -= 1
            self._catch_up()
        elif len(backlog) >= 2 * BACKLOG and len(backlog) >= 4 * self.window:
            del backlog[: len(backlog) // 2]
            # What was skipped may have drifted anywhere: the level begins anew.
            self.last = []

    def _catch_up(self) -> None:
        if self.backlog:
            backlog, self.backlog = self.backlog, []
            for delay in backlog:
                self._take(delay)

    def _take(self, delay: float) -> None:
        if self.last:
            residual = delay - self.level
            if abs(residual) > STEP_MIN_S and self.residuals and abs(residual) > CLIP * self.scale:
                self._put_aside(delay)
                return
            if self.aside:
                self.aside = []
            self._learn(delay, residual)
        self._remember(delay)

    def _learn(self, delay: float, residual: float) -> None:
        if len(self.first) < FIRST:
            self._begin(residual)
        else:
            scale = self.scale
            size = abs(residual)
            self.scale = max(scale + (min(size, CLIP * scale) - scale) / 16.0, SCALE_MIN)
            value = residual / scale
            residuals, ranked = self.residuals, self.ranked
            residuals.append(value)
            if len(residuals) > self.window:
                del ranked[bisect_left(ranked, residuals.pop(0))]
            insort(ranked, value)
        cap = CLIP * self.scale
        errors = self.errors
        best, least = 0, inf
        for place, mean in enumerate(self._means()):
            error = abs(delay - mean)
            new = errors[place] + ((error if error < cap else cap) - errors[place]) / 64.0
            errors[place] = new
            if new < least:
                best, least = place, new
        if least < SWITCH * errors[self.memory]:
            self.memory = best

    def _begin(self, residual: float) -> None:
        """The scale of the first few is their mean: one tiny residual would make all that follow
        count hundreds of scales for as long as they stay in the window."""
        first = self.first
        first.append(residual)
        self.scale = max(sum(map(abs, first)) / len(first), SCALE_MIN)
        self.residuals = [each / self.scale for each in first[-self.window :]]
        self.ranked = sorted(self.residuals)

    def _remember(self, delay: float) -> None:
        self.samples += 1
        last = self.last
        last.append(delay)
        if len(last) > MEMORIES[-1]:
            del last[0]
        recent = last[-MEMORIES[self.memory] :]
        self.level = sum(recent) / len(recent)

    def _means(self) -> tuple[float, ...]:
        """The mean over each memory; one that is not full yet counts what there is."""
        last = self.last
        if len(last) < MEMORIES[-1]:
            return tuple(sum(recent) / len(recent) for recent in (last[-m:] for m in MEMORIES))
        two = last[31] + last[30]
        four = two + last[29] + last[28]
        eight = four + sum(last[24:28])
        sixteen = eight + sum(last[16:24])
        all_of_them = sixteen + sum(last[:16])
        return last[31], two / 2.0, four / 4.0, eight / 8.0, sixteen / 16.0, all_of_them / 32.0

    def _put_aside(self, delay: float) -> None:
        self.aside.append(delay)
        latest = self.aside[-STEP_AGREE:]
        if len(latest) == STEP_AGREE and max(latest) - min(latest) <= CLIP * self.scale:
            self.stepped += 1
            self.aside = []
            self.last = []
            for each in latest:
                self._remember(each)
        elif len(self.aside) >= STEP_GIVE_UP:
            real, self.aside = self.aside, []
            for each in real:
                self._learn(each, each - self.level)
                self._remember(each)

    def feedback(self, late: bool) -> None:
        if not self.adapt:
            return
        gain = self.target / 2.0
        change = -gain * (1.0 / self.target - 1.0) if late else gain
        lowest = min(SHARE_MIN, self.target)
        self.share = min(max(exp(log(self.share) + change), lowest), SHARE_MAX)

    def rebase(self) -> None:
        self._catch_up()
        self.last = []
        self.aside = []
        self.samples = 0

    def deadline(self, departure_s: float, opener_s: float, now: float) -> float:
        self._catch_up()
        return departure_s + self.level + self.scale * self._quantile(self.share)

    def _quantile(self, share: float) -> float:
        """The conformal rank: beyond the window's largest when the window cannot tell."""
        ranked = self.ranked
        rank = ceil((len(ranked) + 1) * (1.0 - share))
        if rank > len(ranked):
            return ranked[-1] + 0.1 * abs(ranked[-1])
        return ranked[rank - 1]

    def wait_for(self, share: float) -> float:
        self._catch_up()
        return max(0.0, self.scale * self._quantile(share)) if self.ranked else 0.0

    def share_for(self, wait_s: float) -> float:
        self._catch_up()
        if not self.ranked:
            return 0.0
        above = len(self.ranked) - bisect_right(self.ranked, wait_s / self.scale)
        return above / len(self.ranked)

    def gauges(self) -> dict[str, float]:
        self._catch_up()
        return {
            "level": self.level,
            "scale": self.scale,
            "quantile": self._quantile(self.share) if self.ranked else 0.0,
            "memory": float(MEMORIES[self.memory]),
            "share": self.share,
        }
