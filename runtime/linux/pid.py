"""A process named by its number and its start time; the number alone may be another one's tomorrow."""

import os


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the name; the state is the first. Raises OSError."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()  # the name may hold spaces and parentheses


def start_time(pid: int) -> int:
    """Clock ticks between boot and the start of the process. Raises OSError."""
    return int(stat_fields(pid)[19])


def is_alive(pid: int, start: int) -> bool:
    """Whether the process with that start time still runs; a zombie has ended, though its number is there."""
    try:
        fields = stat_fields(pid)
        return int(fields[19]) == start and (
            fields[0] not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
        )
    except OSError:
        return False
