"""Limits of clients that docs/compatibility.md tells of: these tests fail when one is gone."""

import subprocess

import pytest

from integration.harness.client import ClientError, Docker28
from integration.harness.ctr import CtrError
from integration.harness.node import Node
from integration.harness.results import Results, Subject
from integration.harness.tools import install, is_there
from integration.harness.workloads import COUNTER


def test_the_second_checkpoint_of_one_specification_has_no_task_in_containerd_1(node: Node) -> None:
    container = node.run(*COUNTER, engine="intercept")
    container.output.wait_step(3)
    container.checkpoint()
    second = container.checkpoint()
    container.remove()

    if node.daemon.tools.name == "debian":
        with pytest.raises(CtrError, match="not found"):
            node.restore(second)
    else:
        node.restore(second).goes_on()


@pytest.mark.skipif(not is_there("docker-28"), reason="toolbox.py get docker-28 takes minutes: on demand")
def test_docker_28_cannot_start_from_a_checkpoint_and_status_says_so(current: Node, results: Results) -> None:
    """shim-contract report 1"""
    client = Docker28(current).start()
    try:
        why = "`start --checkpoint` fails: containerd's shim has no process to name yet"
        container = client.run(*COUNTER)
        container.output.wait_step(3)
        with results.cell(Subject.of(client), "leave-running"):
            container.checkpoint("one", leave_running=True)
            container.goes_on()
        with results.cell(Subject.of(client), "exit", cannot=why):
            container.checkpoint("two")
            with pytest.raises(ClientError, match=r"bind-mount /proc/0/ns/net|already exists"):
                container.start_from("two")
        argv = [str(install().cli), "runtime", "status", "--engine", "docker", "--config", str(client.config)]
        status = subprocess.run(
            [*argv, "--engine-version", client.version], capture_output=True, text=True, check=False
        )
        assert "start --checkpoint" in status.stdout
    finally:
        client.close()


def test_a_privileged_container_is_restored(node: Node) -> None:
    container = node.run(*COUNTER, engine="intercept", options=["--privileged"])
    container.output.wait_step(3)
    image = container.checkpoint()
    container.remove()

    node.restore(image).goes_on()
