"""`diapause cdi`: how this node's GPUs get into containers."""

import json
import os
from typing import Any

import click

from diapause.runtime import config
from diapause.runtime.errors import AlreadyExists, FailedPrecondition
from diapause.runtime.oci.cdi import nvidia, software, specs


@click.group()
def cdi() -> None:
    """Describe the GPUs of this node to container engines (CDI)."""


@cdi.command()
@click.option("--output", "-o", default="", metavar="FILE", help="Write here instead of to stdout.")
@click.option(
    "--format", "style", type=click.Choice(["json", "yaml"]), help="Default: by FILE's name, else json."
)
@click.option("--driver-root", default="/", metavar="DIR", help="Where the driver's files lie.")
@click.option("--software", "want_software", is_flag=True, help="The software GPU, also beside a real one.")
@click.option(
    "--kind", default=specs.SOFTWARE, type=click.Choice([specs.SOFTWARE, specs.NVIDIA]), show_default=True,
    help="The software GPU's name. As nvidia.com/gpu, `--gpus` of nerdctl, Docker and ctr finds it.",
)  # fmt: skip
def generate(output: str, style: str | None, driver_root: str, want_software: bool, kind: str) -> None:
    """Write a CDI specification of the NVIDIA GPUs, or of the software GPU where there is none.

    Every library is a plain mount: no hooks, nothing that a restore would miss.
    """
    specification = _specification(driver_root, want_software=want_software, kind=kind)
    if output:
        _refuse_second(specification["kind"], os.path.abspath(output))
    style = style or ("yaml" if output.endswith((".yaml", ".yml")) else "json")
    text = _rendered(specification, style)
    if not output:
        click.echo(text, nl=False)
        return
    _write(output, text)
    names = ", ".join(f"{specification['kind']}={device['name']}" for device in specification["devices"])
    click.echo(f"devices: {names}", err=True)
    click.echo(f"Wrote {output}")


def _specification(driver_root: str, *, want_software: bool, kind: str) -> dict[str, Any]:
    gpu = nvidia.has_gpu()
    if gpu and kind == specs.NVIDIA and want_software:
        why = "this host has an NVIDIA GPU, and the software GPU must not be taken for it"
        todo = f"leave out --kind, and ask for {specs.SOFTWARE}=0"
        raise FailedPrecondition("softgpu-beside-nvidia", "cdi generate", why, todo)
    if gpu and not want_software:
        return nvidia.generate(root=driver_root)
    beside = "this host has an NVIDIA GPU too" if gpu else "no NVIDIA GPU on this host"
    click.echo(f"notice: this is the software GPU, it computes on the CPU ({beside})", err=True)
    return {**software.generate(), "kind": kind}


def _refuse_second(kind: str, output: str) -> None:
    """Two files of one kind are a conflict to container engines: every device of both becomes unusable."""
    for path, data in specs.read_all(config.load().cdi_spec_dirs):
        if data["kind"] == kind and os.path.realpath(path) != os.path.realpath(output):
            todo = "use that one (Diapause does), or remove it first"
            raise AlreadyExists("cdi-exists", "cdi generate", f"{path} describes {kind} already", todo)


def _rendered(specification: dict[str, Any], style: str) -> str:
    if style == "json":
        return json.dumps(specification, indent=2) + "\n"
    import yaml

    return str(yaml.safe_dump(specification, sort_keys=False))


def _write(output: str, text: str) -> None:
    from diapause.runtime.linux.files import write_atomic

    try:
        os.makedirs(os.path.dirname(output) or ".", exist_ok=True)
        write_atomic(output, text.encode(), mode=0o644)
    except OSError as e:
        why = f"{output}: {e.strerror}"
        raise FailedPrecondition("output-not-written", "cdi generate", why, "choose another file") from None
