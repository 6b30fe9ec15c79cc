"""Every bound in one place, with its reason.

A bound is either a promise to the machine (memory, time) or a guard against a hostile or mistaken
peer. Exceeding one raises `errors.TooLarge` or is counted by a `Note`; it is never silent.
"""

from __future__ import annotations

# A topic's name travels in every message. Precedent: NATS subjects and MQTT topics stay in this
# range in practice; Kafka stops at 249.
TOPIC_BYTES_MAX = 255

# One frame on any link. Precedent: NATS and Kafka both default to 1 MiB.
FRAME_BYTES_MAX = 1024 * 1024

# Topics one subscriber may hold: its walk visits each of them.
TOPICS_PER_SUBSCRIBER_MAX = 10_000

# Rows a trace table gathers before they go to disk as one Parquet part: large enough to compress,
# small enough that a crash costs little and memory stays flat.
TRACE_ROWS_PER_PART = 50_000

# Text of a predicate, and the depth of its tree, before it is looked at at all.
PREDICATE_BYTES_MAX = 4096
PREDICATE_DEPTH_MAX = 32

# A scenario is one person's experiment on one machine; beyond these it is a typing error.
SCENARIO_NODES_MAX = 100_000
SCENARIO_TOPICS_MAX = 100_000
SCENARIO_EVENTS_MAX = 100_000_000

# Steps of a simulation that makes no progress in virtual time: a machine that answers itself.
SIM_STEPS_AT_ONE_INSTANT_MAX = 1_000_000

# Virtual seconds a healed simulation may take until nothing moves any more.
SIM_CONVERGE_S_MAX = 3600.0

# States the exhaustive explorer visits before it says "cut": about 1 GiB of snapshots.
EXPLORER_STATES_MAX = 2_000_000

# Total order (total/). Entries one stamp may carry. A stamp has one per co-subscribed topic, so an
# order over this many topics can never exceed it; more topics are refused at the start.
STAMP_ENTRIES_MAX = 100_000

# Events a subscriber holds back. A full hold stops reading and asks again later (total/engine.py).
# Precedent: nats-py keeps 524,288 messages a subscription; ours are decoded, hence fewer.
HELD_EVENTS_MAX = 65_536

# Events a topic manager keeps for repair; a subscriber further behind is told that they are gone.
RETAINED_EVENTS_MAX = 65_536

# Rounds a topic manager has under way; further requests wait in its queue.
OUTSTANDING_ROUNDS_MAX = 1024

# Requests and walks that wait at a stage (frozen, or too many rounds): beyond, a stage takes in
# nothing new and its senders try again.
QUEUED_REQUESTS_MAX = 65_536

# Publications a client keeps waiting for room in its window; beyond, publish is refused.
WAITING_PUBLICATIONS_MAX = 65_536

# Messages a link resends at once; the acknowledgement tells which of the others are needed.
LINK_RESEND_BURST = 64

# Resends to a silent client before its link is left alone until it is heard of again: with the
# back-off about eight minutes at half a second. Stages never give up on each other.
LINK_TRIES_MAX = 64

# Messages a link keeps for a peer that does not acknowledge them. Stage links stay far below,
# because rounds and windows are bounded; a client this far behind is cut off (its life is over).
LINK_UNACKED_MAX = 131_072

# Peers one process keeps sessions with: sessions are never forgotten, they filter duplicates.
LINK_PEERS_MAX = 1_000_000

# Numbers asked for in one repair request, and sent in one answer.
REPAIR_EVENTS_MAX = 1000

# Heartbeats without an answer before a topic manager gives up until its next event.
HEARTBEATS_MAX = 64

# Topic sets the forest keeps on one line each; beyond, they become one line (ranking.py).
FOREST_LINES_MAX = 10_000

# Log records between two snapshots of a durable machine: bounds recovery time and the log.
LOG_RECORDS_MAX = 10_000
