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

# Brokers of a simulated network: a subscription is announced to every one of them, so that the time
# a large network takes to set up grows with the square. Precedent: the papers stop at 46.
SCENARIO_BROKERS_MAX = 2000

# Publications of one drawn stream (sim/path.py): about 50 bytes each, all in memory.
STREAM_PUBLICATIONS_MAX = 10_000_000

# Steps of a simulation that makes no progress in virtual time: a machine that answers itself.
SIM_STEPS_AT_ONE_INSTANT_MAX = 1_000_000

# Virtual seconds a healed simulation may take until nothing moves any more.
SIM_CONVERGE_S_MAX = 14_400.0

# States the exhaustive explorer visits before it says "cut": about 1 GiB of snapshots.
EXPLORER_STATES_MAX = 2_000_000

# Total order (protocols/total/). Entries one stamp may carry. A stamp has one per co-subscribed
# topic, so an order over this many topics can never exceed it; more are refused at the start.
STAMP_ENTRIES_MAX = 100_000

# Events a subscriber holds back. A full hold stops reading and asks again later (engine.py).
# Precedent: nats-py keeps 524,288 messages a subscription; ours are decoded, hence fewer.
HELD_EVENTS_MAX = 65_536

# Runs of numbers remembered of one origin (core/numbers.py). Above all that may wait: each run
# behind a hole that is waited for has an event in it. An origin with so many holes costs 11 MB of
# memory and 2 MB of state: a topic at a subscriber or a reader of rows, a publisher at a receiver
# of fifo, and each of its former lives that is kept. Without holes it is one run.
NUMBER_RUNS_MAX = 2 * HELD_EVENTS_MAX

# Numbers in the text of a stamp: tables, states and frames keep them in 64 bits.
STAMP_NUMBER_MAX = 2**63 - 1

# Events a topic manager keeps for repair; a subscriber further behind is told that they are gone.
RETAINED_EVENTS_MAX = 65_536

# Their bytes.
RETAINED_BYTES_MAX = 64 * 1024 * 1024

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

# Answers a client has not acknowledged before its further requests are left with it. With what
# waits in the queue (QUEUED_REQUESTS_MAX) and in its window it stays below the next limit.
LINK_ANSWERS_MAX = 32_768

# Messages a link keeps for a peer that does not acknowledge them. Stage links stay far below,
# because rounds and windows are bounded; a client this far behind is cut off (its life is over).
LINK_UNACKED_MAX = 131_072

# Frames of one session on their way, the bytes of them that a receiver keeps while it lacks an
# earlier one, and the bytes of all its sessions. Precedent: TCP windows are hundreds of packets.
LINK_WINDOW_FRAMES = 1024
LINK_WINDOW_BYTES = 1024 * 1024
LINK_WINDOWS_BYTES = 64 * 1024 * 1024

# Links of content brokers. Messages of a link that wait for the acknowledgement of an event behind
# it: half a window, so that the link never stands still. Events for one peer that does not answer.
# Publishers of which a link remembers the last number, about 150 bytes each. Lives of a machine:
# two of them are one session's number.
CUSTODY_MAX = LINK_WINDOW_FRAMES // 2
LINE_WAITING_MAX = LINK_UNACKED_MAX
LINE_PUBLISHERS_MAX = 100_000
LINE_LIVES_MAX = 2**31

# Peers one process keeps sessions with, and ended sessions it remembers, about 100 bytes each.
LINK_PEERS_MAX = 1_000_000
LINK_ENDED_MAX = 100_000

# Numbers asked for in one repair request, and sent in one answer.
REPAIR_EVENTS_MAX = 1000

# Topic sets the forest keeps on one line each; beyond, they become one line (ranking.py).
FOREST_LINES_MAX = 10_000

# Log records between two snapshots of a durable machine, and their bytes (or twice the snapshot's,
# if that is more): they bound the log, and how long a new owner reads it.
LOG_RECORDS_MAX = 10_000
LOG_RECORD_BYTES_MAX = 8 * 2**20

# Probabilistic FIFO (protocols/fifo/). A record: a count of one byte, and room for 32-byte
# summaries with a varint of up to ten bytes each.
RECORD_BYTES_MAX = 3 + 255 * (10 + 32)

# Events a receiver holds back; beyond, the oldest go out and their gaps are given up.
PENDING_EVENTS_MAX = 10_000

# Runs of missing numbers a receiver waits for: a record opens up to 255. Beyond, the oldest events
# go out, as if too many waited.
MISSING_RUNS_MAX = 65_536

# Former versions of a subscription's content that still count; with more of them in one window,
# everything may concern the subscriber.
INTEREST_VERSIONS_MAX = 64

# Earlier incarnations of a publisher whose numbers are remembered against duplicated stragglers.
INCARNATIONS_KEPT = 4

# Publishers one subscriber keeps a receiver for, about 60 kB each; those silent longest go first.
PUBLISHERS_PER_SUBSCRIBER_MAX = 10_000

# Hops in a law of delays (hops.py, fit.py): the work grows with the cube. Measured paths
# have up to 15.
DELAY_HOPS_MAX = 64

# Samples a law of delays is fitted to; of more, evenly spaced ones are taken. Beyond this the error
# of the model, not of the sample, decides.
FIT_SAMPLES_MAX = 20_000

# Content subscriptions (content/). Text of one, in bytes and tokens, before it is parsed: room for
# the largest set written out, and about a tenth of a second of reading.
CONTENT_TEXT_BYTES_MAX = 64 * 1024
CONTENT_TOKENS_MAX = 25_000

# Parentheses and NOTs inside one another. People write three; programs that write more than this
# have lost count, and every walk over the tree recurses this deep.
CONTENT_NESTING_MAX = 100

# Conjunctions of one normal form, and tests in all of them: distributing AND over OR doubles them
# with every clause, and brokers keep and compare each one.
CONTENT_DISJUNCTS_MAX = 64
CONTENT_TESTS_MAX = 10_000

# Members of one IN.
CONTENT_SET_MEMBERS_MAX = 10_000

# Whole numbers of a predicate travel in broker messages, and MessagePack carries 64 bits.
CONTENT_INT_MIN = -(2**63)
CONTENT_INT_MAX = 2**64 - 1

# Boxes one covering test looks at before it gives up: the question is co-NP-complete. Giving up is
# "does not cover", which costs state and never an event. Random predicates needed 92 at most.
CONTENT_COVER_BOXES_MAX = 2000

# Summaries. Pieces of a union of intervals that a group keeps apart on a link; with more of them
# one interval around them all is sent. And how many intervals are looked through to find that out.
CONTENT_SUMMARY_PIECES_MAX = 16
CONTENT_SUMMARY_SWEPT_MAX = 256

# Entries of one topic on one link under the policy "bounded", unless the caller says otherwise:
# what a broker can go through in about a tenth of a millisecond per event.
CONTENT_SUMMARY_ENTRIES = 64

# Content brokers. Entries of one filter message, and about how many bytes of values: a message must
# fit into a frame, skeletons and names included. A new session with more takes several.
CONTENT_FILTER_ENTRIES = 1000
CONTENT_FILTER_VALUES = 256 * 1024

# Entries one link may hold of one topic, and subscriptions of one client: about 1 kB each.
CONTENT_LINK_ENTRIES_MAX = 1_000_000
CONTENT_SUBSCRIPTIONS_PER_CLIENT_MAX = 100_000

# Topics one broker keeps tables for, and topics one client advertises.
CONTENT_BROKER_TOPICS_MAX = 100_000
CONTENT_ADVERTISED_MAX = 10_000

# Brokers of one tree: each of them knows the names of all.
CONTENT_TREE_MEMBERS_MAX = 10_000

# Changes a link may have unconfirmed, per topic. A peer that sends more without waiting is refused
# until the first of them are.
CONTENT_UNCONFIRMED_MAX = 1_000_000

# Event ids a broker remembers to notice a cycle, about 15 MB; and those a client remembers, against
# events that are sent again.
CONTENT_BROKER_EVENTS_SEEN = 100_000
CONTENT_CLIENT_EVENTS_SEEN = 10_000

# The matching index (content/index/). Members a set may be hashed under, all sets of a form taken
# together; a form with more is tested by itself. One set of the largest size must fit.
INDEX_SPOTS_PER_FORM_MAX = 10_000

# Rows of one sorted chunk: an insertion moves half of them, 8 kB of ends and 8 kB of keys.
INDEX_CHUNK_ROWS_MAX = 2000

# Rows up to which walking in Python beats the fixed cost of NumPy: measured, they meet here.
INDEX_WALKED_ROWS_MAX = 48

# Changes of a bucket between two looks at its windows, which cost about half a millisecond each. It
# takes so many rows, at least, for a grid to be worth its memory, and so many are looked at.
INDEX_REVIEW_OPERATIONS = 1000
INDEX_GRID_ROWS_MIN = 500
INDEX_SAMPLE_ROWS = 200

# Cells a window may overlap, and the share of windows over more of them, which every event looks
# at one by one.
INDEX_CELLS_PER_ROW_MAX = 16
INDEX_WIDE_SHARE_MAX = 0.01

# Pairs of event and row a batch compares at once: a few arrays of 8 MB each.
INDEX_BATCH_PAIRS_MAX = 1_000_000

# Matching in Spark (pipeline/match*.py). Text of one event's attributes: what a frame can carry.
MATCH_ATTRIBUTES_BYTES_MAX = FRAME_BYTES_MAX

# Topics that all subscribers together hold: every worker keeps them, 2.5 kB each while it builds.
MATCH_HOLDINGS_MAX = 1_000_000

# Events matched at once, and about how many pairs of event and subscriber come of them: a few
# arrays of 8 MB each. And rows handed back to Spark at once.
MATCH_EVENTS_AT_ONCE = 32_768
MATCH_PAIRS_AT_ONCE = 1_000_000
MATCH_ROWS_AT_ONCE = 32_768

# Events of one topic up to which asking one by one beats the fixed cost of a batch: measured.
MATCH_SINGLE_EVENTS_MAX = 32

# Sets of subscriptions, and parsed predicates, that a worker keeps for its next task.
MATCH_INDEXES_KEPT = 4
MATCH_PREDICATES_KEPT = 4096

# Versions of a table of subscriptions between two snapshots, so many are read to begin with.
SUBSCRIPTION_VERSIONS_PER_SNAPSHOT = 256

# Micro-batches whose version stays pinned. Spark keeps the state of 100, and runs only the last one
# again by itself; older ones only if somebody turns a checkpoint back.
PINNED_BATCHES_KEPT = 1000

# Sweeps (cli/sweep/). Points of one sweep: each travels to a task as about 1 kB, and leaves a file.
SWEEP_POINTS_MAX = 100_000

# Tasks of a sweep; with more points than these, a task runs several, one after the other.
SWEEP_TASKS_MAX = 10_000

# Deliveries of a point that is judged: rows of about 0.5 kB, all in memory of a Spark task.
SWEEP_JUDGED_DELIVERIES_MAX = 200_000

# The Spark source (pipeline/source.py). Rows of a trace, and bytes of a log, that become one Arrow
# batch: enough to hide the cost of a batch, few enough to stay in the processor's cache.
SOURCE_EVENTS_AT_ONCE = 10_000
SOURCE_BYTES_AT_ONCE = 4 * 1024 * 1024

# Seconds a broker may take to answer the source or the sink, when somebody else holds its lock.
SOURCE_WAIT_S = 30.0

# Events for which a task of its own pays: starting one takes about ten milliseconds.
SOURCE_ROWS_PER_TASK_MIN = 5000

# The Spark sink. Micro-batches whose receipts are kept: Spark runs only the last one again by
# itself, older ones only if somebody turns a checkpoint back.
SINK_BATCHES_KEPT = 1000

# Seconds a task of the sink waits for its turn to write: others write whole partitions.
SINK_WAIT_S_MAX = 600.0

# Bytes of values that a subscription keeps for an application that does not read them; the log
# keeps the rest. Precedent: the NATS server gives a slow consumer 64 MiB.
UNREAD_BYTES_MAX = 64 * 1024 * 1024

# Events in one run of values: what one answer of a broker tells, and one checksum covers.
PUBLISH_AT_ONCE = 4096

# Bytes of one event of the bus. Kafka and NATS take twice as many, unless told otherwise.
EVENT_BYTES_MAX = FRAME_BYTES_MAX // 2

# Bytes of the topics' names of one subscription: each look at a broker names them all.
SUBSCRIBED_BYTES_MAX = FRAME_BYTES_MAX // 4

# Ordering in Spark (pipeline/order*.py). Rows of one subscriber from which on looking at them all
# at once beats one by one (measured), topics such a look compares, and so the cells of its tables:
# 8 bytes each, a few tables at a time.
SKIM_ROWS_MIN = 48
SKIM_TOPICS_MAX = 64

# Rows a lane packs into one blob, and hands back at once: small enough for the processor's cache,
# large enough to hide the cost of a blob.
ORDER_ROWS_PER_BLOB = 32_768

# Lanes of a streaming query: each is one value of state, read and written whole.
ORDER_LANES_MAX = 10_000

# The hypercube (protocols/cube/). Peers of one cube: each keeps up to five numbers of eight bytes
# for every other one and topic, which is 2.6 MB at this many. Calls of an application that wait
# for their turn on one topic.
CUBE_PEERS_MAX = 65_536
CUBE_CALLS_MAX = 65_536

# Publications of one peer on one topic under way: each is kept until it is acknowledged.
CUBE_WINDOW_MAX = 65_536

# Parts of a cube's trees whose split is remembered (parts.py), by all peers of a process together.
# A topic that half of 4,096 peers hold has 7,700 of them in 6 MB; the fattest of 65,536 peers take
# 10 kB each.
CUBE_SPLITS_KEPT = 16_384

# Turns of a peer's life that a failure detector believes in (detector.py): from correct to faulty
# and back. Counters travel in 64 bits, and a turn takes a round at least.
CUBE_TURNS_MAX = 2**32

# Causal order (protocols/causal/). Causes one stamp may name: with numbers of eight bytes they fill
# three quarters of a frame. A barrier has one for each member at most, and usually a handful; only
# whole stamps over many topics come near.
CAUSAL_STAMP_ENTRIES_MAX = 65_536

# Gaps that a subscriber remembers of one publisher, so that late events which rest on one are not
# handed over: one for each time that the publisher died with events nobody has.
CAUSAL_GAPS_MAX = 1000

# Machines whose latencies are compared to number the peers of a cube (mapping.py): a matrix of a
# million floats, and eight seconds. Edges of trees looked at while numbers are swapped: seconds,
# and enough for so many machines that all talk alike.
CUBE_MAPPED_MAX = 1024
CUBE_MAPPING_EDGES_MAX = 2_000_000

# Bytes of a packet that messages of a cube share (bundler.py): all headers and a short message, and
# what a UDP datagram takes.
CUBE_MTU_MIN = 256
CUBE_MTU_MAX = 65_507

# Cells of a grid (guarantee/cells/). Cells that one subscription may need: each is a topic, and all
# peers of the cube hear of each join. Cells that one event may be in: it is published in each.
# Columns on either side of the origin, so that no two lines between cells fall together.
CUBE_CELLS_MAX = 1024
CUBE_COPIES_MAX = 64
CUBE_CELL_INDEX_MAX = 2**31

# Events in several cells that a subscriber remembers until their other copies have come. A copy
# that a filter keeps back is never seen to come, hence a bound.
CUBE_AREAS_REMEMBERED_MAX = 65_536

# Publications of one source on one topic that a member keeps until they are stable, in windows: the
# source's window, what was stable and is not known to be, and as much again for what overtakes.
CUBE_KEPT_WINDOWS = 4

# Runs of numbers of one dead source that a member remembers as lost: each life leaves one, and what
# is asked for is of the last life.
CUBE_LOST_RUNS_MAX = 16

# Publications that go as one append: one transaction, so that a sync is shared, and no answer takes
# long. A single larger one goes alone.
APPEND_BYTES_MAX = 8 * 1024 * 1024

# Values that are kept together as one run of events: large enough that what is kept once a run
# costs little, small enough that a filter need not read much to get at one event.
RUN_BYTES = 64 * 1024

# Bytes of a log that a reader asks for at once.
READ_BYTES_AT_ONCE = 4 * 1024 * 1024

# Key and headers of an event, in characters. Precedent: Kafka and NATS bound them by the message.
HEADERS_BYTES_MAX = 16 * 1024

# Seconds of a deadline or a quiet time: eleven days; more is a typing error.
WAIT_S_MAX = 1_000_000.0

# Files of events (brokers/). Bytes of values in one row: a block is read, summed and skipped whole.
# Larger ones cost memory, smaller ones a row more (measured: the rate is flat from 64 to 256 kB).
BLOCK_BYTES_MAX = 128 * 1024

# Publishers without a name that a broker remembers, against repeats: each process is one, and is
# forgotten only when so many others came after it.
NAMELESS_KEPT_MAX = 4096

# Offsets that a file without syncs may use before it writes down, synced, that it may go on: what a
# power cut takes is never given again, and a gap of a million positions is nothing of 2^63.
CEILING_STEP = 2**20
