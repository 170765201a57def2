"""Taking turns between variants, and what counts of the samples."""

import os
import random
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Samples:
    """Milliseconds per variant, in the order in which they were taken."""

    values: dict[str, list[float]]

    def low(self, variant: str) -> float:
        """The tenth percentile: what the machine does when nothing is in its way."""
        values = sorted(self.values[variant])
        return values[len(values) // 10]

    def median(self, variant: str) -> float:
        return statistics.median(self.values[variant])


def alternate(variants: Mapping[str, Callable[[], float]], rounds: int, *, warm: int = 2) -> Samples:
    """Run every variant once per round, in an order that changes; each returns its own milliseconds."""
    order = random.Random(1)
    names = list(variants)
    values: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-warm, rounds):
        order.shuffle(names)
        for name in names:
            taken = variants[name]()
            if number >= 0:
                values[name].append(taken)
        if sys.stderr.isatty():
            print(f"\r  {number + 1}/{rounds}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    return Samples({name: values[name] for name in variants})


def pin() -> None:
    """Keep this process and its children on four processors, the same ones all the time."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:4])
