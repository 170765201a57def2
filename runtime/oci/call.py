"""One call of diapause-runc: what was typed, the low-level runtime, the configuration."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` imports enum
import os

from diapause.runtime.config import Config, load
from diapause.runtime.container import Container

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from diapause.runtime.oci.args import Command


class Call:
    __slots__ = ("_config", "command", "front", "runc")

    def __init__(self, command: Command, *, runc: str, front: str) -> None:
        self.command = command
        self.runc = runc  # absolute path of the low-level runtime
        self.front = front  # real path of diapause-runc
        self._config: Config | None = None

    @property
    def config(self) -> Config:
        """Loaded when first asked for: a broken one stops no container that asks for no GPU."""
        if self._config is None:
            self._config = load()
        return self._config

    @property
    def container(self) -> Container:
        return Container(self.command.root, self.command.id)

    @property
    def is_taken(self) -> bool:
        """runc has a container of this id: its state of ours must stay as it is."""
        return os.path.exists(os.path.join(self.command.root, self.command.id))

    @property
    def hook(self) -> str:
        """The hook program of the same installation."""
        return os.path.join(os.path.dirname(self.front), "diapause-hook")

    def become_runc(self) -> NoReturn:
        """Go on as the low-level runtime with words, environment, descriptors and signals as they came."""
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # ignored by Python, and that would be inherited
            _signal.signal(number, _signal.SIG_DFL)
        os.execve(self.runc, [self.runc, *self.command.argv], _environment())


def _environment() -> dict[str, str]:
    """Without the LC_CTYPE that Python sets for itself where no locale is set."""
    environment = dict(os.environ)
    with open("/proc/self/environ", "rb") as file:
        if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
            environment.pop("LC_CTYPE", None)
    return environment
