"""Reports to render: a realistic one, a hostile one, and nothing at all."""

from __future__ import annotations

from inorder.check.verdict import judged, not_judged
from inorder.pipeline.page import Histogram, Mark, ReportData, SpaceTime

HOSTILE = "<script>alert('x')</script>\"&\x00\u202e]]>"
LONG = "urn:uuid:" + "0123456789" * 30


def disagreement() -> SpaceTime:
    """ledger and warehouse deliver p1:1 and p2:1 in opposite orders; mailer gets p1:1 late."""
    return SpaceTime(
        "ledger and warehouse disagree",
        ["p1", "p2", "ledger", "warehouse", "mailer"],
        [Mark("p1:1", "p1", 4.0), Mark("p2:1", "p2", 4.002)],
        [
            Mark("p1:1", "ledger", 4.005, crossing=True),
            Mark("p2:1", "ledger", 4.009, crossing=True),
            Mark("p2:1", "warehouse", 4.004, crossing=True),
            Mark("p1:1", "warehouse", 4.011, crossing=True),
            Mark("p2:1", "mailer", 4.006),
            Mark("p1:1", "mailer", 4.015, in_order=False),
        ],
    )


def realistic() -> ReportData:
    cycle = {
        "cycle": ["p1:1", "p2:1"],
        "because": [
            {"subscriber": "ledger", "first": "p1:1", "then": "p2:1", "nths": [1, 2]},
            {"subscriber": "warehouse", "first": "p2:1", "then": "p1:1", "nths": [1, 2]},
        ],
    }
    opposite = {
        "promise": "broke Total - ...",
        "events": ["p1:1", "p2:1"],
        "subscribers": ["ledger", "warehouse"],
        "nths": {"ledger": [1, 2], "warehouse": [2, 1]},
    }
    acyclic = judged("acyclic", 1, {"components": 1}, cycle)
    twice = {"event": "p1:9", "subscriber": "mailer", "nths": [7, 8]}
    return ReportData(
        "Orders and payments",
        "out/trace",
        481_344,
        "broken",
        {
            "total": judged("total", 1234, {"subscribers": 3}, opposite, {"acyclic": acyclic}),
            "fifo": judged("fifo", 0, {"deliveries": 481_344}, None),
            "causal": not_judged("causal", "needs the column `after`"),
            "unique": judged("unique", 2, {}, twice),
            "reliable": judged("reliable", 0, {"owed": 12, "lost": 0}, None),
        },
        {"seed": 7, "topics": ["orders", "payments"], "faults": {"loss": 0.02}, "tls": None},
        {
            "end_to_end": Histogram([0.0, 0.01, 0.02, 0.04], [10, 80, 10]),
            "network": Histogram([0.0, 0.001, 0.002], [50, 50]),
            "hold": Histogram([0.0, 0.5], [0]),
        },
        [disagreement()],
    )


def hostile() -> ReportData:
    """The same hostile text in every place that takes text."""
    bad = HOSTILE
    witness = {bad: bad, "events": [bad, LONG], "deep": {bad: {bad: [bad]}}}
    picture = SpaceTime(
        bad, [bad], [Mark(bad, bad, 1.0)], [Mark(bad, bad, 2.0, crossing=True, in_order=False)]
    )
    inner = judged(bad, 1, {bad: 1}, witness)
    return ReportData(
        bad,
        bad,
        1,
        bad,
        {bad: judged(bad, 1, {bad: 1}, witness, {bad: inner}), "other": not_judged(bad, bad)},
        {bad: bad, "list": [bad], "deep": {"a": {bad: [bad]}}},
        {bad: Histogram([0.0, 1.0], [1])},
        [picture],
    )


def nothing() -> ReportData:
    return ReportData("", "", 0, "", {})
