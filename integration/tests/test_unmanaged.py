"""Containers that ask for no GPU: Diapause stays out of their way."""

from integration.harness.node import Node
from integration.harness.proc import View


def test_a_container_without_a_gpu_comes_back_with_its_memory(node: Node) -> None:
    first = node.run("/opt/count", engine="")
    first.output.wait_step(3)
    image = first.checkpoint()
    before = View.of(first.pid())
    first.goes_on()
    at = first.output.step()
    first.remove()

    second = node.restore(image)

    assert View.of(second.pid()) == before
    assert second.goes_on() > 3
    assert second.output.steps()[0] == 0  # its file came along: every step is there once
    assert at > 3
