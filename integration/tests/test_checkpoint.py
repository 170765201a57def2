"""GPU containers through `ctr`: saved, removed, restored, with the values they had."""

import pytest

from integration.harness import proc
from integration.harness.container import Container
from integration.harness.node import Node
from integration.harness.proc import View
from integration.harness.workloads import COUNTER, GPU


def views(container: Container) -> list[View]:
    """All processes of a container as they look from outside."""
    return [View.of(pid) for pid in container.processes()]


def changes(before: list[View], after: list[View]) -> list[str]:
    return [line for pair in zip(before, after, strict=True) for line in pair[0].changes(pair[1])]


def test_a_counter_goes_on_where_it_was_under_the_same_name_twice(node: Node) -> None:
    container = node.run(*COUNTER)
    container.output.wait_step(3)
    before = views(container)
    name = container.id
    for _ in range(2):
        image = container.checkpoint()
        at = container.output.step()
        container.remove()

        container = node.restore(image, name)

        assert changes(before, views(container)) == []
        assert container.goes_on() >= at
        node.forget(image)


def test_a_counter_comes_back_under_a_new_name(node: Node) -> None:
    first = node.run(*COUNTER)
    first.output.wait_step(3)
    image = first.checkpoint()
    first.remove()

    second = node.restore(image)

    assert second.goes_on() > 3


def test_the_container_runs_on_after_a_checkpoint(node: Node) -> None:
    container = node.run(*COUNTER)
    container.output.wait_step(3)
    before = views(container)

    container.checkpoint()

    container.goes_on()
    assert changes(before, views(container)) == []


def test_one_image_serves_several_restores(current: Node) -> None:
    first = current.run(*COUNTER)
    first.output.wait_step(3)
    image = first.checkpoint()
    first.remove()
    starts = []
    for _ in range(2):
        container = current.restore(image)
        container.goes_on()
        starts.append([line for line in container.output.lines() if line.startswith("step")][:3])
        container.remove()

    assert starts[0] == starts[1]


def test_files_and_memory_are_of_one_moment(current: Node) -> None:
    """ctr takes the rw layer before the task's checkpoint: nothing may run in between."""
    container = current.run(*COUNTER[:1], "--interval", "2")
    container.output.wait_step(50)
    image = container.checkpoint()
    container.remove()

    container = current.restore(image)

    container.goes_on(by=20)
    steps = container.output.steps()
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("workload", GPU.values(), ids=GPU)
def test_every_workload_keeps_its_values_over_two_rounds(current: Node, workload: tuple[str, ...]) -> None:
    container = current.run(*workload)
    container.output.wait_step(3)
    before = views(container)
    for _ in range(2):
        image = container.checkpoint()
        container.goes_on()
        container.remove()

        container = current.restore(image)

        container.goes_on()
        assert changes(before, views(container)) == []
        current.forget(image)


@pytest.mark.parametrize("name", ["counter", "polling events", "two processes"])
def test_it_works_in_a_unified_cgroup_tree(unified: Node, name: str) -> None:
    container = unified.run(*GPU[name])
    container.output.wait_step(3)
    for _ in range(2):
        image = container.checkpoint()
        container.goes_on()
        container.remove()
        container = unified.restore(image)
        container.goes_on()
        unified.forget(image)


def test_exit_ends_the_task_and_leaves_a_complete_image(node: Node) -> None:
    container = node.run(*COUNTER)
    container.output.wait_step(3)
    pids = container.processes()
    folder = node.path / "image"

    container.checkpoint_exit(str(folder))

    assert container.status() in ("", "STOPPED")
    assert {"diapause.json", "inventory.img"} <= {p.name for p in folder.iterdir()}
    assert not [pid for pid in pids if proc.alive(pid)]
