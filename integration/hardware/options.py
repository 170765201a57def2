"""What a section was asked for, and how much time it has."""

import time
from dataclasses import dataclass


def parse(text: str) -> tuple[str, dict[str, str]]:
    """`name:key=value,key=value` as a name and its options; a key without a value has an empty one."""
    name, _, rest = text.partition(":")
    pairs = (word.partition("=") for word in rest.split(",") if word)
    return name, {key: value for key, _, value in pairs}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    name: str
    chosen: dict[str, str]
    end: float  # on time.monotonic(): nothing new begins after it

    def text(self, key: str, default: str) -> str:
        return self.chosen.get(key, default)

    def number(self, key: str, default: int) -> int:
        return int(self.chosen.get(key, default))

    def names(self, key: str, default: list[str]) -> list[str]:
        """A list, joined by +. Raises ValueError for a name that is not in the default."""
        names = self.chosen[key].split("+") if key in self.chosen else default
        if unknown := set(names) - set(default):
            raise ValueError(f"no {', '.join(sorted(unknown))}; there are {', '.join(default)}")
        return names

    @property
    def left(self) -> float:
        """Seconds until `end`, not below 0."""
        return max(0.0, self.end - time.monotonic())
