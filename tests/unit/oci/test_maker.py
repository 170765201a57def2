"""Two processes that make a container of one id."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from diapause.runtime.container import Container
from diapause.runtime.errors import Unavailable
from diapause.runtime.linux import pid
from diapause.runtime.oci import maker


@pytest.fixture
def container() -> Container:
    container = Container("/r", "c1")
    container.make_directory()
    return container


def test_the_mark_is_left_and_may_be_left_again(container: Container) -> None:
    for _ in range(2):
        maker.claim(container)
    assert os.readlink(f"{container.directory}/maker") == maker.mark()


def test_while_one_makes_it_another_one_is_refused(container: Container) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        mark = f"{child.pid}-{pid.start_time(child.pid)}"
        Path(container.directory, "maker").symlink_to(mark)
        with pytest.raises(Unavailable, match="creating or restoring it"):
            maker.claim(container)
        assert os.readlink(f"{container.directory}/maker") == mark
        assert child.stdin is not None
        child.stdin.close()
        child.wait(30)
        maker.claim(container)


def test_a_reused_number_is_no_maker(container: Container) -> None:
    Path(container.directory, "maker").symlink_to("1-1")
    maker.claim(container)
