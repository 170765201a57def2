"""The files in configs/ are what `diapause runtime install` writes, and others can read them."""

from pathlib import Path

import pytest
import yaml

from .conftest import Node

CONFIGS = Path(__file__).parents[4] / "configs"


@pytest.mark.parametrize(
    ("engine", "version", "written", "example"),
    [
        ("containerd", "1.7", "/etc/containerd/config.toml", "containerd/config-v2.toml"),
        ("containerd", "2.4", "/etc/containerd/config.toml", "containerd/config-v3.toml"),
        ("docker", "27.5", "/etc/docker/daemon.json", "docker/daemon.json"),
        ("crio", "1.36", "/etc/crio/crio.conf.d/99-diapause.conf", "crio/99-diapause.conf"),
        ("podman", "5.4", "/etc/containers/containers.conf.d/99-diapause.conf", "podman/99-diapause.conf"),
    ],
)
def test_an_example_is_what_install_writes(
    node: Node, engine: str, version: str, written: str, example: str
) -> None:
    node.install(engine, "--engine-version", version)

    text = node.path(written).read_text()
    plain = "".join(line for line in text.splitlines(True) if not line.startswith("# diapause runtime:"))
    assert plain.endswith((CONFIGS / example).read_text())


def test_the_runtime_class_has_the_handler_that_is_installed() -> None:
    found = yaml.safe_load((CONFIGS / "kubernetes/runtimeclass.yaml").read_text())
    pod = yaml.safe_load((CONFIGS / "kubernetes/pod.yaml").read_text())
    assert found["handler"] == found["metadata"]["name"] == pod["spec"]["runtimeClassName"] == "diapause"


def test_every_file_is_listed() -> None:
    text = (CONFIGS / "README.md").read_text()
    files = [str(p.relative_to(CONFIGS)) for p in CONFIGS.rglob("*") if p.is_file() and "ci" not in p.parts]
    assert [name for name in files if name != "README.md" and f"]({name})" not in text] == []
