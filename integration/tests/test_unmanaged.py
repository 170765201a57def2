"""Containers that ask for no GPU: Diapause stays out of their way."""

import shutil
from pathlib import Path

import pytest

from integration.harness.ctr import CtrError
from integration.harness.node import Node
from integration.harness.proc import View
from integration.harness.tools import install
from integration.harness.workloads import CPU


def test_a_container_without_a_gpu_comes_back_with_its_memory(node: Node) -> None:
    first = node.run(*CPU, engine="")
    first.output.wait_step(3)
    image = first.checkpoint()
    before = View.of(first.pid())
    first.goes_on()
    at = first.output.step()
    first.remove()

    second = node.restore(image)

    assert before.changes(View.of(second.pid())) == []
    assert second.goes_on() > 3
    assert second.output.steps()[0] == 1  # its file came along: every step is there once
    assert at > 3


def test_a_container_without_a_gpu_comes_back_in_a_unified_cgroup_tree(unified: Node) -> None:
    first = unified.run(*CPU, engine="")
    first.output.wait_step(3)
    image = first.checkpoint()
    first.goes_on()
    first.remove()

    assert unified.restore(image).goes_on() > 3


def test_its_specification_stays_as_the_client_wrote_it(current: Node) -> None:
    theirs = current.run(*CPU, engine="", runtime=current.daemon.tools.find("runc"))
    ours = current.run(*CPU, engine="")

    assert current.config(ours).replace(ours.id, "ID") == current.config(theirs).replace(theirs.id, "ID")


def test_it_starts_without_our_package(current: Node, tmp_path: Path) -> None:
    """Only the C front is left: no Python of ours, no configuration."""
    front = tmp_path / "diapause-runc"
    shutil.copy2(install().runtime, front)

    alone = current.run(*CPU, engine="", runtime=front)

    assert alone.goes_on() >= 5
    alone.kill()
    assert alone.status() == "STOPPED"


def test_a_managed_one_says_that_the_package_is_missing(current: Node, tmp_path: Path) -> None:
    front = tmp_path / "diapause-runc"
    shutil.copy2(install().runtime, front)

    with pytest.raises(CtrError, match=r"the Python part of diapause is missing.*\[python-missing\]"):
        current.run(*CPU, engine="driver", runtime=front)
