"""Fixtures: a private containerd for each tool set, and a bare low-level runtime."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import proc, results, tools
from integration.harness.bundle import Runtime
from integration.harness.node import Node


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes longer than a minute; run by `make soak`")


def _end(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def pytest_sessionstart() -> None:
    signal.signal(signal.SIGTERM, _end)  # `timeout` and CI end a run so: its containers and daemons end too
    signal.signal(signal.SIGINT, _end)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="containers with CRIU need root"))


class Nodes:
    """The nodes of this session, one for each set and cgroup version, started when first asked for."""

    def __init__(self) -> None:
        self.started: dict[tuple[str, bool], Node] = {}

    def get(self, name: str, *, unified: bool = False) -> Node:
        key = (name, unified)
        if key not in self.started:
            self.started[key] = Node(tools.toolset(name), unified=unified).start()
        return self.started[key]


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    for node in made.started.values():
        node.close()


@pytest.fixture(params=tools.SETS)
def node(request: pytest.FixtureRequest, nodes: Nodes) -> Iterator[Node]:
    """A node of each tool set."""
    made = nodes.get(request.param)
    yield made
    made.clean()


@pytest.fixture
def current(nodes: Nodes) -> Iterator[Node]:
    """A node with containerd 2.4 and runc 1.5."""
    made = nodes.get("current")
    yield made
    made.clean()


@pytest.fixture
def unified(nodes: Nodes) -> Iterator[Node]:
    """A node whose containers live in a cgroup v2 tree."""
    made = nodes.get("current", unified=True)
    yield made
    made.clean()


@pytest.fixture(scope="session", name="results")
def _results() -> results.Results:
    return results.from_environment()


@pytest.fixture(scope="session")
def _base() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="dp-"))
    yield base
    proc.unmount_below(base)
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def _runtime(_base: Path) -> Runtime:
    return Runtime(_base, tools.toolset("current"))


@pytest.fixture
def runtime(_runtime: Runtime) -> Iterator[Runtime]:
    """`diapause-runc` on runc 1.5, without containerd, with its own settings."""
    yield _runtime
    _runtime.clean()
    _runtime.settings.reset()
