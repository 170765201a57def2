"""Who gets a container, and who has to come back later."""

import os
import threading
import time

import pytest

from diapause.runtime import errors
from diapause.runtime.container import Container
from diapause.runtime.engine import lease
from diapause.runtime.linux.locks import Lock


@pytest.fixture
def container(host):
    container = Container("/run/runc", "c1")
    (host / "run").mkdir(mode=0o700, exist_ok=True)
    container.make_directory()
    return container


def test_a_second_operation_is_told_who_has_it(container):
    with (
        lease.take(container, "checkpoint"),
        pytest.raises(errors.Unavailable, match=rf"\(checkpoint, process {os.getpid()}\)"),
    ):
        lease.take(container, "restore")


def test_an_operation_waits_for_a_controller_that_only_looks(container):
    held = Lock.try_take(f"{container.directory}/lock")
    assert held
    held.write("release 1\n")
    threading.Timer(0.1, held.close).start()
    before = time.monotonic()

    lease.take(container, "checkpoint").close()

    assert time.monotonic() - before >= 0.09


@pytest.mark.parametrize("said", ["", "checkpoint 1\n"])
def test_whoever_has_just_taken_it_may_say_what_for(container, said):
    """In the file there may still be the words of the holder before."""
    held = Lock.try_take(f"{container.directory}/lock")
    assert held
    held.write(said)
    threading.Timer(0.03, held.close).start()

    lease.take(container, "checkpoint").close()


def test_a_container_that_was_deleted_is_not_made_anew(container):
    os.rmdir(container.directory)

    with pytest.raises(errors.NotFound, match="container-missing"):
        lease.take(container, "checkpoint")
    assert not os.path.exists(container.directory)
