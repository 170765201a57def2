"""nerdctl and Docker: what their users type, on a GPU, with both pairs of containerd and runc."""

from collections.abc import Iterator
from itertools import count

import pytest

from integration.conftest import Nodes
from integration.harness import proc, tools
from integration.harness.client import Client, ClientError, Docker, Nerdctl, Podman, Started
from integration.harness.ctr import CtrError
from integration.harness.node import Node
from integration.harness.results import Results, Subject
from integration.harness.wait import until
from integration.harness.workloads import COUNTER, GPU, MANAGED

CLIENTS = {client.NAME: client for client in (Nerdctl, Docker)}
EVERY = {**CLIENTS, Podman.NAME: Podman}
CAP_SYS_RESOURCE = 24
_names = count(1)


class Clients:
    """Started when first asked for, one of each kind and tool set."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.started: dict[tuple[str, str], Client] = {}

    def get(self, name: str, tool_set: str) -> Client:
        if (name, tool_set) not in self.started:
            self.started[name, tool_set] = EVERY[name](self.nodes.get(tool_set)).start()
        return self.started[name, tool_set]


@pytest.fixture(scope="module")
def clients(nodes: Nodes) -> Iterator[Clients]:
    made = Clients(nodes)
    yield made
    for client in made.started.values():
        client.close()


@pytest.fixture(params=[(name, which) for which in tools.SETS for name in EVERY], ids="-".join)
def client(request: pytest.FixtureRequest, clients: Clients) -> Iterator[Client]:
    made = clients.get(*request.param)
    yield made
    made.clean()


@pytest.fixture(params=CLIENTS)
def new(request: pytest.FixtureRequest, clients: Clients) -> Iterator[Client]:
    """On the current pair alone."""
    made = clients.get(request.param, "current")
    yield made
    made.clean()


def checkpoint() -> str:
    """A name that no other test has: nerdctl keeps the checkpoints of all containers in one directory."""
    return f"cp{next(_names)}"


def test_two_rounds_of_checkpoint_with_exit_and_start(client: Client, results: Results) -> None:
    with results.cell(Subject.of(client), "exit"):
        container = client.run(*COUNTER)
        container.output.wait_step(3)
        for _ in range(2):
            name = checkpoint()
            container.checkpoint(name)
            container.start_from(name)
            container.goes_on()
            assert any("/.diapause/libcuda.so.1" in line for line in proc.maps(container.pid()))


def test_checkpoints_of_a_container_that_is_left_running(client: Client, results: Results) -> None:
    with results.cell(Subject.of(client), "leave-running"):
        container = client.run(*COUNTER)
        container.output.wait_step(3)
        pid = container.pid()
        for _ in range(2):
            container.checkpoint(checkpoint(), leave_running=True)
            container.goes_on()
        assert container.pid() == pid


def test_ctr_leaves_running_and_restores_under_another_name(node: Node, results: Results) -> None:
    with results.cell(Subject.ctr(node.daemon.tools), "leave-running"):
        container = node.run(*COUNTER, engine="intercept")
        container.output.wait_step(3)
        for _ in range(2):
            image = container.checkpoint()
            container.goes_on()
            container.remove()
            container = node.restore(image)
            container.goes_on()
            node.forget(image)


def test_ctr_has_no_command_that_restores_what_its_checkpoint_with_exit_wrote(
    node: Node, results: Results
) -> None:
    why = "`ctr tasks checkpoint --exit` works, but no command of ctr restores from what it writes"
    with results.cell(Subject.ctr(node.daemon.tools), "exit", cannot=why):
        container = node.run(*COUNTER, engine="intercept")
        container.output.wait_step(3)
        image = node.ctr("task", "checkpoint", "--exit", container.id).strip()
        until(lambda: container.status() == "STOPPED", f"end of {container.id}")
        container.remove()
        with pytest.raises(CtrError, match="image name not found in index"):
            node.restore(image)


def test_a_checkpoint_that_is_refused_tells_why_and_the_container_goes_on(client: Client) -> None:
    container = client.run(*MANAGED)
    container.output.wait_step(3)

    with pytest.raises(ClientError, match=r"managed memory.*\[driver-not-supported\]"):
        container.checkpoint(checkpoint())

    container.goes_on()


@pytest.mark.parametrize("name", ["polling events", "two processes"])
def test_programs_that_poll_and_that_have_children(new: Client, name: str) -> None:
    container = new.run(*GPU[name])
    container.output.wait_step(3)
    made = checkpoint()
    container.checkpoint(made)

    container.start_from(made)

    container.goes_on()


def test_an_old_checkpoint_is_started_after_later_ones(new: Client) -> None:
    container = new.run(*COUNTER)
    container.output.wait_step(3)
    first = checkpoint()
    container.checkpoint(first, leave_running=True)
    then = container.goes_on()
    container.checkpoint(checkpoint())

    container.start_from(first)

    until(lambda: container.output.steps()[-1] < then, "a step of the old checkpoint")


def test_podman_exports_a_checkpoint_and_imports_it_under_another_name(clients: Clients) -> None:
    client = clients.get(Podman.NAME, "current")
    container = client.run(*COUNTER)
    container.output.wait_step(3)
    file = str(client.node.path / "export.tar.gz")
    client.checkpoint(container.name, file, leave_running=False)
    last = container.output.step()
    container.remove()
    copy = Started(client, client.node.name())
    try:
        client.start_from(copy.name, file)
        assert copy.goes_on() > last
    finally:
        copy.remove()
        client.clean()


OPTIONS = {
    "a terminal": ("--tty",),
    "a terminal with open stdin": ("--interactive", "--tty"),
    "a read-only root": ("--read-only",),
    "a tmpfs": ("--tmpfs", "/scratch"),
    "a volume": ("--volume", "/usr/share:/host:ro"),
    "the host's pids": ("--pid", "host"),
    "a memory limit": ("--memory", "256m"),
    "another user": ("--user", "1000:1000"),
    "privileged": ("--privileged",),
    "no new privileges": ("--security-opt", "no-new-privileges"),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_that_a_restore_has_to_bring_back(new: Client, options: tuple[str, ...]) -> None:
    if "--user" in options and not proc.has_capability(CAP_SYS_RESOURCE):
        pytest.skip(
            "this machine's root has no CAP_SYS_RESOURCE, without which CRIU dumps root's processes alone"
        )
    container = new.run(*COUNTER, options=options)
    container.output.wait_step(3)
    made = checkpoint()
    container.checkpoint(made)

    container.start_from(made)

    container.goes_on()
