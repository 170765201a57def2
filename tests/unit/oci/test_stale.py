import os
import time
from pathlib import Path

import pytest

from diapause.runtime.container import Container
from diapause.runtime.linux.locks import Lock
from diapause.runtime.oci import stale


@pytest.fixture
def leftover(host: Path) -> Container:
    """Of a container that runc does not know."""
    container = Container(str(host / "root"), "gone")
    container.make_directory()
    with container.lock():
        make(container)
    age(container, 1000)
    return container


def make(container: Container) -> None:
    container.store_state({"version": 1, "root": container.root, "id": container.id})
    stale.link(container.directory, container.root, container.id)


def age(container: Container, seconds: float) -> None:
    then = time.time() - seconds
    for path in (container.directory, f"{container.directory}/runc"):
        if os.path.lexists(path):
            os.utime(path, (then, then), follow_symlinks=False)


def test_an_old_leftover_goes(leftover: Container) -> None:
    stale.sweep()
    assert not Path(leftover.directory).exists()


def test_a_young_one_stays_because_runc_may_be_about_to_begin(leftover: Container) -> None:
    age(leftover, 500)
    stale.sweep()
    assert Path(leftover.directory).exists()


def test_one_that_an_operation_holds_stays(leftover: Container) -> None:
    with leftover.lock():
        stale.sweep()
    assert Path(leftover.directory).exists()


def test_one_whose_container_is_there_stays(leftover: Container, host: Path) -> None:
    (host / "root" / "gone").mkdir(parents=True)
    stale.sweep()
    assert Path(leftover.directory).exists()


def test_one_that_was_never_finished_goes_too(leftover: Container) -> None:
    Path(leftover.directory, "runc").unlink()
    age(leftover, 1000)
    stale.sweep()
    assert not Path(leftover.directory).exists()


@pytest.mark.parametrize("what", ["runc's directory", "our state"])
def test_a_container_that_takes_its_place_during_the_sweep_stays(
    leftover: Container, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    take = Lock.try_take

    def after_another(path: str) -> Lock | None:
        if what == "our state":
            make(leftover)
        else:
            Path(leftover.root, leftover.id).mkdir(parents=True)
        return take(path)

    monkeypatch.setattr(Lock, "try_take", after_another)
    stale.sweep()
    assert leftover.load_state() is not None


def test_the_link_follows_the_container(leftover: Container) -> None:
    stale.link(leftover.directory, "/other", "c1")
    stale.link(leftover.directory, "/other", "c1")
    assert os.readlink(f"{leftover.directory}/runc") == "/other/c1"


def test_a_host_without_containers_has_nothing_to_sweep() -> None:
    stale.sweep()
