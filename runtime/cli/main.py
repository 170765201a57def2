"""`diapause`: the command line people type. It parses and calls; every command is a file of its own."""

import click

from diapause.runtime.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="diapause", message="%(prog)s %(version)s")
def main() -> None:
    """Checkpoint and restore containers together with the state of their GPUs."""
