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
