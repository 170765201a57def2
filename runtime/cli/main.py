"""`diapause`: the command line people type. It parses and calls; every command is a file of its own."""

from __future__ import annotations

import importlib
import os
import sys

import click

from diapause.runtime.errors import DiapauseError
from diapause.runtime.version import __version__

_COMMANDS = {  # name of the command: the module in this package that has it under the same name
    "cdi": "cdi",
    "components": "components",
    "config": "config",
    "demo": "demo.command",
    "runtime": "runtime.command",
    "snapshot": "snapshot.command",
}


class Commands(click.Group):
    """Loads the module of a command when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"diapause.runtime.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """The edge: an error of ours, or of the system, becomes one line on stderr and status 1."""
        try:
            return super().invoke(ctx)
        except DiapauseError as error:
            click.echo(f"diapause: {error}", err=True)
            sys.exit(1)
        except BrokenPipeError:
            raise  # click ends quietly
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            todo = "; run it as root" if isinstance(error, PermissionError) and os.geteuid() else ""
            click.echo(
                f"diapause: {where}{(error.strerror or str(error)).lower()}{todo} [os-error]", err=True
            )
            sys.exit(1)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="diapause", message="%(prog)s %(version)s")
def main() -> None:
    """Checkpoint and restore containers together with the state of their GPUs."""
