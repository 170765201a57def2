"""Segments: files in memory that the GPU writes straight into. /dev/shm is a tmpfs everywhere."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from diapause.runtime import errors
from diapause.runtime.linux import filesystem
from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store.gpu_index import BLOCK

GPU = "GPU-d1a9a05e-50f7-4000-8000-000000000000"
SEGMENTS = 3 * 8 * BLOCK  # of 1 GiB each when there is room for one; here the tier is smaller: one file


@pytest.fixture
def memory(monkeypatch) -> Iterator[Path]:
    """A memory-dir with room for one segment of 24 blocks."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("/dev/shm cannot be written")
    path = Path(tempfile.mkdtemp(dir="/dev/shm"))
    fd = os.open(path, os.O_RDONLY)
    in_memory = filesystem.in_memory(fd)
    os.close(fd)
    if not in_memory:
        pytest.skip("/dev/shm is no tmpfs")
    monkeypatch.setenv("DIAPAUSE_SNAPSHOT_MEMORY_DIR", str(path))
    monkeypatch.setenv("DIAPAUSE_GPU_MEMORY_TIER", str(SEGMENTS))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def tiered(memory, controller, deadline):
    """A controller whose segment is ready."""
    while controller.hello(deadline).segments < SEGMENTS:
        assert not deadline.expired
    return controller


@pytest.fixture
def save(tiered, program, container, deadline, allocation, memory):
    """Saves so many blocks into a new directory of this name; returns what was said of it."""

    def saved(name: str, *seeds: list[int]):
        fds = dict(enumerate(program.make(*seeds), 1))
        tiered.begin(container, deadline)
        tiered.take(container, [allocation(n, len(s)) for n, s in enumerate(seeds, 1)], fds, deadline)
        (memory / name).mkdir()
        directory = os.open(memory / name, os.O_RDONLY)
        try:
            tiered.save(container, directory, deadline)
            return tiered.wait(container, deadline)
        finally:
            os.close(directory)
            for fd in fds.values():
                program.release(fd)

    return saved


def load(controller, path: Path, container: str, deadline: Deadline):
    directory = os.open(path, os.O_RDONLY)
    try:
        controller.load(container, directory, deadline)
        return controller.wait(container, deadline)
    finally:
        os.close(directory)


def test_a_save_goes_straight_into_a_segment(save, memory):
    saved = save("one", [1, 0, 2], [3])

    assert (saved.way, saved.written) == ("segments", 3 * BLOCK)
    data = (memory / "one/diapause-gpu-0.img").stat()
    assert data.st_ino == (memory / f".segments/{GPU}/0").stat().st_ino
    assert data.st_nlink == 2
    assert data.st_mode & 0o777 == 0o600


def test_a_load_comes_straight_from_it(save, tiered, memory, container, deadline, program, digest):
    save("one", [1, 0, 2], [3])

    assert load(tiered, memory / "one", container, deadline).way == "segments"
    given = tiered.give(container, 1, [1, 2], deadline)
    assert program.read(list(given.values()), [3 * BLOCK, BLOCK]) == [digest([1, 0, 2]), digest([3])]
    for fd in given.values():
        os.close(fd)


def test_a_segment_of_a_snapshot_that_is_there_is_not_used_again(save, tiered, memory, container, deadline):
    save("one", [1, 2])

    second = save("two", [3, 4])

    assert second.way == "buffered"
    assert (memory / "two/diapause-gpu-0.img").stat().st_nlink == 1
    assert load(tiered, memory / "one", container, deadline).written == 2 * BLOCK
    assert tiered.hello(deadline).segments == 0


def test_a_segment_is_used_again_when_its_snapshot_is_gone(save, tiered, memory, deadline):
    save("one", [1, 2])
    shutil.rmtree(memory / "one")
    assert tiered.hello(deadline).segments == SEGMENTS

    assert save("two", [3, 4]).way == "segments"


def test_what_does_not_fit_goes_into_files_beside_it(save, tiered, memory, container, deadline):
    saved = save("one", [n + 1 for n in range(30)], [0, 50])

    assert (saved.way, saved.written) == ("buffered", 31 * BLOCK)
    links = sorted(path.stat().st_nlink for path in (memory / "one").glob("*.img"))
    assert links[-1] == 2
    assert links[0] == 1
    assert load(tiered, memory / "one", container, deadline).written == 31 * BLOCK


def test_a_name_that_is_taken_leaves_the_segment_out(save, tiered, memory, deadline, monkeypatch):
    """As does a directory that is another mount of the same tmpfs."""
    real = Path.mkdir

    def with_a_stranger(path, *args, **kwargs):
        real(path, *args, **kwargs)
        (path / "diapause-gpu-0.img").write_text("mine")

    monkeypatch.setattr(Path, "mkdir", with_a_stranger)
    with pytest.raises(errors.Internal, match=r"gpud-io|File exists"):
        save("one", [1, 2])

    assert (memory / "one/diapause-gpu-0.img").read_text() == "mine"
    assert tiered.hello(deadline).segments == SEGMENTS


def test_a_directory_elsewhere_gets_plain_files(
    tiered, program, container, directory, deadline, allocation, host
):
    (fd,) = program.make([1, 2])
    tiered.begin(container, deadline)
    tiered.take(container, [allocation(1, 2)], {1: fd}, deadline)

    tiered.save(container, directory, deadline)
    assert tiered.wait(container, deadline).way == "buffered"


def test_segments_outlive_the_controller(save, tiered, connect, memory, container, deadline):
    save("one", [1, 0, 2])
    pid = tiered.hello(deadline).pid
    os.kill(pid, 9)
    again = connect()

    assert load(again, memory / "one", container, deadline).bytes == 3 * BLOCK
    while load(again, memory / "one", container, deadline).way != "segments":
        assert not deadline.expired
    assert [path.name for path in (memory / f".segments/{GPU}").iterdir()] == ["0"]


def test_a_segment_that_an_earlier_controller_did_not_finish_is_finished(memory, connect, deadline):
    folder = memory / f".segments/{GPU}"
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    (folder / "0").write_bytes(bytes(4096))

    controller = connect()

    while controller.hello(deadline).segments < SEGMENTS:
        assert not deadline.expired
    assert [path.stat().st_size for path in folder.iterdir()] == [SEGMENTS]


def test_a_memory_dir_where_others_can_write_is_none(memory, host, connect, deadline):
    memory.chmod(0o777)

    assert connect().hello(deadline).segments == 0
    assert "others can write there" in (host / f"run/gpud/{GPU}/log").read_text()


def test_a_memory_dir_on_a_disk_is_none(host, monkeypatch, connect, deadline):
    monkeypatch.setenv("DIAPAUSE_SNAPSHOT_MEMORY_DIR", "/proc/1")
    monkeypatch.setenv("DIAPAUSE_GPU_MEMORY_TIER", str(SEGMENTS))

    assert connect().hello(deadline).segments == 0
    log = (host / f"run/gpud/{GPU}/log").read_text()
    assert "no memory tier" in log
