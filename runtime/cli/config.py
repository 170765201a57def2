"""`diapause config`: the configuration in effect."""

from __future__ import annotations

import json
import os

import click

from diapause.runtime import config as configuration


@click.group()
def config() -> None:
    """Show the configuration in effect."""


@config.command()
def path() -> None:
    """Print the file that is read, whether it exists or not."""
    click.echo(os.environ.get("DIAPAUSE_CONFIG") or configuration.DEFAULT_PATH)


@config.command()
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def show(*, as_json: bool) -> None:
    """Print every key with its value, as a configuration file would have it.

    An unknown key or a wrong value is an error, so this checks the file as well.
    """
    values = configuration.load()
    tables: dict[str, dict[str, object]] = {}
    for name, (section, key) in configuration.keys().items():
        tables.setdefault(section, {})[key] = getattr(values, name)
    if as_json:
        click.echo(json.dumps(tables, indent=2))
        return
    for section, keys in tables.items():
        click.echo(f"[{section}]")
        for key, value in keys.items():
            click.echo(f"{key} = {json.dumps(value)}")  # of strings, numbers and lists, JSON is TOML
