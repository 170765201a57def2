"""`diapause demo`."""

from __future__ import annotations

import signal
import sys

import click


@click.command()
@click.option("--keep", is_flag=True, help="Leave the logs and the configuration of the run.")
def demo(*, keep: bool) -> None:
    """Save a GPU container, remove it, bring it back: with a private containerd, in seconds.

    Gets containerd, runc and CRIU where they are missing (into $DIAPAUSE_CACHE), installs and configures
    nothing, and leaves nothing running. Without a GPU the software GPU stands in.
    """
    from diapause.runtime.cli.demo.run import run
    from diapause.runtime.cli.demo.story import Story

    for number in (signal.SIGTERM, signal.SIGHUP):  # like Ctrl-C: unwind, so that everything is ended
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    run(Story(), lambda text: click.echo(f"  {text}", err=True), keep=keep)
