"""Every bound of the pipeline, with its reason. Read at call time, so that tests may lower them."""

from __future__ import annotations

# Coded deliveries (about 30 bytes each) one Python process holds at a time. A longer log is cut
# into slices of whole subscribers. 24 million keep Python under 1.6 GiB beside a JVM of 2 GiB.
SLICE_ROWS_MAX = 24_000_000

# Slices up to which the log is scanned again for each, rather than shuffled once.
RESCANS_MAX = 16

# Deliveries one Spark task turns into a result for this process (about 20 bytes each).
TASK_ROWS = 500_000

# Different steps "e just before f" kept to ask for one common order: 16 bytes each, and as much
# again while components are sought.
STEPS_MAX = 64_000_000

# Cells (subscribers x events) of the place table of one comparison task: 256 MiB. Beyond that the
# task looks places up by event instead.
PLACE_CELLS_MAX = 64_000_000

# Deliveries in one block of subscribers; a comparison task holds two blocks.
BLOCK_ROWS_MAX = 2_000_000

# Comparisons (deliveries x subscribers) below which starting Spark tasks costs more than it gives.
LOCAL_COMPARISONS_MAX = 200_000_000

# Cells (publications x publishers) of pasts computed at a time: 256 MiB.
PAST_CELLS_MAX = 64_000_000

# Events one process indexes for the promises that need them: about 60 bytes each.
EVENTS_MAX = 24_000_000

# Events of tangles that are searched for the shortest cycle: a witness should not cost more than
# the verdict. A tangle that is larger and has no two events in opposite orders is only named.
CYCLE_EVENTS_MAX = 200
