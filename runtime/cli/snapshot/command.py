"""`diapause snapshot`: look at snapshots, check them, and keep the local store in order."""

from __future__ import annotations

import importlib

import click

_COMMANDS = {"embed": "embed", "list": "listing", "prune": "prune", "rm": "remove", "show": "show",
             "verify": "verify"}  # fmt: skip


class _Commands(click.Group):
    """Loads the module of a command when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"diapause.runtime.cli.snapshot.{_COMMANDS[cmd_name]}")
        command: click.Command = module.command
        return command


@click.command(cls=_Commands)
def snapshot() -> None:
    """Look at snapshots, check them, and keep the local store in order.

    A snapshot is named by its image directory, or by its name in the local store of this machine.
    """
