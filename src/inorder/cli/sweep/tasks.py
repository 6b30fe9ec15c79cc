"""Work handed out as the tasks of one Spark job, in the order of a list.

A task keeps what it finds by itself, in a file that all hosts see; the driver only counts. So a job
that is stopped loses what is under way, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from inorder.core.limits import SWEEP_TASKS_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Seconds between two looks at how far the tasks are.
LOOK_S = 0.2

GROUP = "inorder sweep"


def run_tasks(
    spark: SparkSession,
    items: Sequence[bytes],
    work: Callable[[bytes], str | None],
    show: Callable[[int], None],
) -> tuple[list[str], BaseException | None]:
    """Call `work` with every item: the complaints that it returned, and what ended the job early.

    `show` hears how many items are done. What it raises, or an interrupt of the keyboard, cancels
    the tasks under way, and is raised here.
    """
    from pyspark import inheritable_thread_target

    context = spark.sparkContext
    counted = context.accumulator(0)

    def in_task(some: Any) -> Any:
        for each in some:
            complaint = work(each)
            counted.add(1)
            if complaint is not None:
                yield complaint

    def job() -> list[str]:
        context.setJobGroup(GROUP, f"{len(items)} points", interruptOnCancel=True)
        slices = min(len(items), SWEEP_TASKS_MAX)
        complaints: list[str] = context.parallelize(items, slices).mapPartitions(in_task).collect()
        return complaints

    def tell() -> None:
        show(min(int(counted.value or 0), len(items)))

    tell()
    with ThreadPoolExecutor(1) as pool:
        running: Future[list[str]] = pool.submit(inheritable_thread_target(spark)(job))
        try:
            while not wait([running], LOOK_S).done:
                tell()
        except BaseException:
            context.cancelJobGroup(GROUP)
            raise
    tell()
    failure = running.exception()
    return ([] if failure else running.result()), failure


def reason(error: BaseException) -> str:
    """Our own words in a Java trace, if there are any."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("inorder.core.errors.")]
    if ours:
        return ours[-1].partition(": ")[2]
    return (lines or [type(error).__name__])[-1 if len(lines) == 1 else 0][:200]
