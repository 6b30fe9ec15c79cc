"""The dial: the share of late events against the time a missing one is waited for.

A user turns one of two knobs. Asked for a share, an estimator says how long past its expected
arrival a missing event will be waited for; asked for a wait, it says which share will come late
(estimator.py). The summary shows both beside what was measured, so that nobody has to believe them.
"""

from __future__ import annotations

from math import isnan

from inorder.protocols.fifo.counters import Counters
from inorder.protocols.fifo.estimator import Estimator
from inorder.protocols.fifo.options import Options


def account(
    counters: Counters, estimators: list[tuple[int, Estimator]], late: float
) -> dict[str, float]:
    """Counters and dial as figures that can be summed over subscribers.

    Each estimator comes with the number of events it saw; `dial_...` are sums over events.
    """
    wait_s = share = 0.0
    for weight, estimator in estimators:
        wait = estimator.wait_for(late)
        wait_s += weight * wait
        share += weight * estimator.share_for(wait)
    return {**counters.as_dict(), "dial_wait_s": wait_s, "dial_share": share}


def describe(account: dict[str, float], options: Options) -> list[str]:
    """What the summed accounts mean, for people.

    >>> sums = {"received": 200, "late": 1, "held": 40, "waited_s": 0.5, "planned_s": 1.0,
    ...         "dial_wait_s": 4.0, "dial_share": 1.8, "expired": 3, "held_useful": 20}
    >>> print("\\n".join(describe(sums, Options(late=0.01))))
    late     0.50 % measured, 0.90 % predicted, 1.00 % asked for (1 of 200 events)
    wait     2.5 ms mean over all events; held 40: 12.5 ms mean, 25.0 ms at most as planned
    dial     a missing event is waited for 20.0 ms past its expected arrival
    gaps     20 filled in time, 3 given up
    """
    received = account.get("received", 0.0)
    if not received:
        return []
    held, late, waited_s = account["held"], account["late"], account["waited_s"]
    share = account["dial_share"] / received
    predicted = "nothing predicted" if isnan(share) else f"{share * 100:.2f} % predicted"
    mean_ms, plan_ms = (
        (waited_s / held * 1e3, account["planned_s"] / held * 1e3) if held else (0.0, 0.0)
    )
    return [
        f"late     {late / received * 100:.2f} % measured, {predicted}, "
        f"{options.late * 100:.2f} % asked for ({late:.0f} of {received:.0f} events)",
        f"wait     {waited_s / received * 1e3:.1f} ms mean over all events; held {held:.0f}: "
        f"{mean_ms:.1f} ms mean, {plan_ms:.1f} ms at most as planned",
        f"dial     a missing event is waited for {account['dial_wait_s'] / received * 1e3:.1f} ms "
        "past its expected arrival",
        f"gaps     {account['held_useful']:.0f} filled in time, {account['expired']:.0f} given up",
    ]
