import os
import time
from pathlib import Path

import pytest

from diapause.runtime.container import Container
from diapause.runtime.oci import stale


@pytest.fixture
def leftover(host: Path) -> Container:
    """Of a container that runc does not know."""
    container = Container(str(host / "root"), "gone")
    container.make_directory()
    container.store_state({"version": 1, "root": container.root, "id": container.id})
    stale.link(container.directory, container.root, container.id)
    old = time.time() - 1000
    os.utime(container.directory, (old, old))
    return container


def test_an_old_leftover_goes(leftover: Container) -> None:
    stale.sweep()
    assert not Path(leftover.directory).exists()


def test_a_young_one_stays_because_runc_may_be_about_to_begin(leftover: Container) -> None:
    os.utime(leftover.directory)
    stale.sweep()
    assert Path(leftover.directory).exists()


def test_one_that_an_operation_holds_stays(leftover: Container) -> None:
    with leftover.lock():
        os.utime(leftover.directory, (1, 1))
        stale.sweep()
    assert Path(leftover.directory).exists()


def test_one_whose_container_is_there_stays(leftover: Container, host: Path) -> None:
    (host / "root" / "gone").mkdir(parents=True)
    stale.sweep()
    assert Path(leftover.directory).exists()


def test_without_a_link_nothing_is_known_and_nothing_removed(leftover: Container) -> None:
    Path(leftover.directory, "runc").unlink()
    os.utime(leftover.directory, (1, 1))
    stale.sweep()
    assert Path(leftover.directory).exists()


def test_the_link_follows_the_container(leftover: Container) -> None:
    stale.link(leftover.directory, "/other", "c1")
    stale.link(leftover.directory, "/other", "c1")
    assert os.readlink(f"{leftover.directory}/runc") == "/other/c1"


def test_a_host_without_containers_has_nothing_to_sweep() -> None:
    stale.sweep()
