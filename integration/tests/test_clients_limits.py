"""Limits of clients that docs/compatibility.md tells of: these tests fail when one is gone."""

import pytest

from integration.harness.ctr import CtrError
from integration.harness.node import Node
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


def test_a_privileged_container_is_restored(node: Node) -> None:
    container = node.run(*COUNTER, engine="intercept", options=["--privileged"])
    container.output.wait_step(3)
    image = container.checkpoint()
    container.remove()

    node.restore(image).goes_on()
