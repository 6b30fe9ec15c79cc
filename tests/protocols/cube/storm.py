"""Peers of a cube that crash, stand still and answer late, under drawn schedules with time.

A *plan* says who does what and when, and who dies how: a `Cut` strikes a node in the first input
from some time on whose effects send a message of some kind, and cuts these effects at any place.
What was just sent may be lost with it. An `Orphan` is the worst case: a publication reaches one
peer only, which answers it; then both die. Everything is judged by mourner.py as it happens.

    python -m tests.protocols.cube.storm --schedules 1000
    python -m tests.protocols.cube.storm --first 17 --schedules 1 --story
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from msgspec import structs

from tests.protocols.cube.crashing import Storm
from tests.protocols.cube.judge import Broken
from tests.protocols.cube.plans import Plan, clocks, draw, neighbours


def run(plan: Plan, storm: type[Storm] = Storm) -> Storm:
    """One schedule, judged; raises `Broken`."""
    made = storm(plan)
    made.run()
    return made


def broken(plan: Plan, storm: type[Storm] = Storm) -> str:
    """Which property a plan breaks, or nothing; anything else that is raised is `machine`."""
    try:
        run(plan, storm)
    except Broken as error:
        return error.what
    except Exception:
        return "machine"
    return ""


def shrunk(plan: Plan) -> Plan:
    """A plan with fewer calls and faults that breaks the same."""
    what = broken(plan)
    smaller = True
    while smaller:
        smaller = False
        for field in ("faults", "calls"):
            several = getattr(plan, field)
            for place in range(len(several)):
                rest = several[:place] + several[place + 1 :]
                less = structs.replace(plan, **{field: rest})
                if broken(less) == what:
                    plan, smaller = less, True
                    break
            if smaller:
                break
    return plan


def story(plan: Plan) -> list[str]:
    """What happens in a run, and how it ends."""
    made = Storm(plan)
    made.told = True
    try:
        made.run()
    except Exception as error:
        made.lines.append(f"{type(error).__name__}: {error}")
    return made.lines


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--neighbours", action="store_true", help="edges of the cube only")
    parser.add_argument("--clocks", action="store_true", help="chapter 4: members never change")
    parser.add_argument("--story", action="store_true")
    parser.add_argument("--go-on", action="store_true", help="count what breaks, tell no story")
    asked = parser.parse_args()
    started = time.process_time()
    marks: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    steps = 0
    for seed in range(asked.first, asked.first + asked.schedules):
        plan = draw(seed)
        if asked.neighbours:
            plan = neighbours(plan)
        if asked.clocks:
            plan = clocks(plan)
        made = Storm(plan)
        try:
            made.run()
        except Exception as error:
            if asked.go_on:
                wrong[type(error).__name__ + getattr(error, "what", "")] += 1
                print(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}")
                continue
            plan = shrunk(plan)
            print(f"seed {seed}: {type(error).__name__}: {error}", *story(plan), plan, sep="\n")
            return 1
        steps += made.taken
        marks.update(made.marks)
        if asked.story:
            print(plan, *story(plan), sep="\n")
    print(f"{asked.schedules} schedules, {steps} steps, {time.process_time() - started:.0f} s")
    print(dict(sorted(marks.items())), dict(wrong))
    return 0


if __name__ == "__main__":
    sys.exit(main())
