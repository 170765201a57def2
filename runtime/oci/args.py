"""runc's command line: globals, verb, flags and id.

Go's rules: one or two dashes, `=` or a space, and flags of the verb also after the id except for exec and
ps, whose words after the id belong to another program. Unknown flags count as switches. What is parsed here
is only looked at: runc gets its words as they came.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Flags that take a value; every other flag is a switch. "log-level" and "cgroup-manager" are crun's.
GLOBAL_VALUES = ("log", "log-format", "log-level", "root", "criu", "rootless", "cgroup-manager")
_CREATE = ("bundle", "console-socket", "pidfd-socket", "pid-file", "preserve-fds")
_CRIU = ("image-path", "work-path", "manage-cgroups-mode", "empty-ns")
VALUES: dict[str, tuple[str, ...]] = {
    "create": _CREATE,
    "run": _CREATE,
    "checkpoint": (*_CRIU, "parent-path", "status-fd", "page-server"),
    "restore": (
        *_CRIU, "bundle", "console-socket", "pid-file", "lsm-profile", "lsm-mount-context", "parent-path",
        "page-server",
    ),
    "exec": (
        "process", "pid-file", "console-socket", "pidfd-socket", "cwd", "env", "user", "additional-gids",
        "process-label", "apparmor", "cap", "preserve-fds", "cgroup",
    ),
    "ps": ("format",),
    "list": ("format",),
    "events": ("interval",),
    "spec": ("bundle",),
    "update": (
        "resources", "blkio-weight", "cpu-period", "cpu-quota", "cpu-burst", "cpu-share", "cpu-rt-period",
        "cpu-rt-runtime", "cpuset-cpus", "cpuset-mems", "cpu-idle", "kernel-memory", "kernel-memory-tcp",
        "memory", "memory-reservation", "memory-swap", "pids-limit", "l3-cache-schema", "mem-bw-schema",
    ),
}  # fmt: skip
ALIASES = {"b": "bundle", "d": "detach", "f": "format", "p": "process", "e": "env", "u": "user",
           "g": "additional-gids", "c": "cap", "t": "tty", "r": "resources", "q": "quiet", "a": "all",
           "h": "help", "v": "version"}  # fmt: skip
WORDS_OF_OTHERS = ("exec", "ps")
ONE_WORD = ("create", "run", "checkpoint", "restore", "suspend")  # verbs that take the id and nothing else
TRUE = ("1", "t", "T", "TRUE", "true", "True")  # strconv.ParseBool


class Command:
    """A parsed command line."""

    __slots__ = ("flags", "global_args", "global_flags", "is_incomplete", "verb", "verb_args", "words")

    def __init__(self) -> None:
        self.global_args: list[str] = []  # before the verb, verbatim
        self.global_flags: dict[str, str] = {}
        self.verb = ""
        self.verb_args: list[str] = []  # after the verb, verbatim
        self.flags: dict[str, str] = {}  # by long name; a switch has the value "true"
        self.words: list[str] = []  # of the verb, that are no flags
        self.is_incomplete = False  # the last flag lacks its value

    @property
    def id(self) -> str:
        """Where it is the only word, the last one: what stands before it is the value of an unknown flag."""
        if not self.words:
            return ""
        return self.words[-1 if self.verb in ONE_WORD else 0]

    @property
    def argv(self) -> list[str]:
        """The words again, without the program's name."""
        return [*self.global_args, *([self.verb] if self.verb else []), *self.verb_args]

    @property
    def root(self) -> str:
        """runc's root directory, without links: /var/run and /run are one root."""
        if "root" in self.global_flags:
            return os.path.realpath(self.global_flags["root"])
        user = os.environ.get("XDG_RUNTIME_DIR") if os.geteuid() else None
        return os.path.realpath(os.path.join(user or "/run", "runc"))

    @property
    def log(self) -> str:
        """The file of --log, absolute; "" if none was given."""
        log = self.global_flags.get("log")
        return os.path.abspath(log) if log else ""

    @property
    def log_format(self) -> str:
        return self.global_flags.get("log-format", "text")

    def switch(self, name: str) -> bool:
        return self.flags.get(name, "") in TRUE

    def path(self, name: str, default: str = "") -> str:
        """The value of a flag that names a file, absolute; "" if neither it nor a default was given."""
        value = self.flags.get(name) or default
        return os.path.abspath(value) if value else ""

    @property
    def is_for_runc_alone(self) -> bool:
        """It prints help or an error: no runtime has an id with a slash."""
        names_nothing = self.id in ("", ".", "..") or "/" in self.id
        return not self.verb or self.switch("help") or self.is_incomplete or names_nothing


def parse(argv: Sequence[str]) -> Command:
    command = Command()
    verb = _scan(command, argv, GLOBAL_VALUES, command.global_flags, stop_at_word=True)[1]
    command.global_args = list(argv[:verb])
    if verb < len(argv) and not ("help" in command.global_flags or "version" in command.global_flags):
        command.verb = argv[verb]
        command.verb_args = list(argv[verb + 1 :])
        values = VALUES.get(command.verb, ())
        others = command.verb in WORDS_OF_OTHERS
        command.words, _ = _scan(command, command.verb_args, values, command.flags, stop_at_word=others)
    else:
        command.global_args = list(argv)
    return command


def _scan(
    command: Command,
    words: Sequence[str],
    values: tuple[str, ...],
    flags: dict[str, str],
    *,
    stop_at_word: bool,
) -> tuple[list[str], int]:
    """Read flags into `flags`; returns the other words and the index where the scan ended."""
    others: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return ([*others, *words[at + 1 :]], at + 1)
        if not word.startswith("-") or word == "-":
            if stop_at_word:
                return ([*others, *words[at:]], at)
            others.append(word)
        else:
            name, equals, value = word[2 if word.startswith("--") else 1 :].partition("=")
            name = ALIASES.get(name, name)
            if not equals and name in values:
                at += 1
                value = words[at] if at < len(words) else ""
                command.is_incomplete |= at == len(words)
            elif not equals:
                value = "true"
            flags[name] = value
        at += 1
    return others, at
