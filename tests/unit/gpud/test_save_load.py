"""Device memory into a snapshot and back, through the real server, on the software GPU."""

import os
import stat
from pathlib import Path

import pytest

from diapause.runtime import errors
from diapause.runtime.store import gpu_index
from diapause.runtime.store.gpu_index import BLOCK, NOWHERE

SEEDS = {1: [3, 0, 0, 4, 5], 2: [0, 0], 3: [0, -6, 0], 4: [7] * 20}


@pytest.fixture
def saved(controller, program, container, directory, deadline, allocation):
    """A container with four allocations, of which a snapshot was taken."""
    fds = dict(zip(SEEDS, program.make(*SEEDS.values()), strict=True))
    controller.begin(container, deadline)
    controller.take(container, [allocation(n, len(s)) for n, s in SEEDS.items()], fds, deadline)
    controller.save(container, directory, deadline)
    return controller.wait(container, deadline)


@pytest.fixture
def index(saved, host) -> gpu_index.Index:
    return gpu_index.decode((host / "snapshot/diapause-gpu.idx").read_bytes(), "test")


def test_a_save_says_what_it_has_done(saved, host):
    assert (saved.bytes, saved.zero, saved.written) == (30 * BLOCK, 6 * BLOCK, 24 * BLOCK)
    assert saved.way == "buffered"
    assert sorted(saved.files) == sorted(
        (path.name, path.stat().st_size) for path in (host / "snapshot").iterdir()
    )
    assert {"hashed", "copied"} <= set(saved.phases)


def test_files_are_for_root_alone(saved, host):
    assert {stat.S_IMODE(path.stat().st_mode) for path in (host / "snapshot").iterdir()} == {0o600}


def test_the_index_knows_every_block_and_leaves_zeros_out(saved, index, host, digest):
    assert [(a.id, a.size, a.address) for a in index.allocations] == [
        (n, len(s) * BLOCK, 0x300000000000 + n * BLOCK * 64) for n, s in SEEDS.items()
    ]
    for a in index.allocations:
        zero = [file == NOWHERE for file, *_ in index.of(a)]
        assert zero == [seed == 0 for seed in SEEDS[a.id]]
    stored = {path.name: path.stat().st_size for path in (host / "snapshot").glob("*.img")}
    assert sum(stored.values()) == 24 * BLOCK
    assert [slots * BLOCK for slots in index.slots()] == [
        stored[f"diapause-gpu-{n}.img"] for n in range(index.files)
    ]


def test_a_load_brings_everything_back(saved, connect, program, directory, deadline, digest, host, container):
    other = "beef0000" * 4
    (host / "run/c" / other).mkdir()
    controller = connect()

    found = controller.load(other, directory, deadline, digest=saved.index)
    loaded = controller.wait(other, deadline)

    assert (loaded.bytes, loaded.zero, loaded.written) == (saved.bytes, saved.zero, saved.written)
    assert [(a.process, a.id, a.size) for a in found] == [(1, n, len(s) * BLOCK) for n, s in SEEDS.items()]
    fds = controller.give(other, 1, list(SEEDS), deadline)
    try:
        sizes = [len(seeds) * BLOCK for seeds in SEEDS.values()]
        assert program.read(list(fds.values()), sizes) == [digest(seeds) for seeds in SEEDS.values()]
    finally:
        for fd in fds.values():
            os.close(fd)
    assert controller.hello(deadline).containers == sorted([container, other])


def test_what_a_load_brought_back_can_be_saved_without_being_handed_over_again(
    saved, controller, container, directory, deadline, allocation, host
):
    controller.load(container, directory, deadline)
    controller.wait(container, deadline)
    (host / "again").mkdir()
    again = os.open(host / "again", os.O_RDONLY)

    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 5), allocation(3, 3)], {}, deadline)
    controller.save(container, again, deadline)
    second = controller.wait(container, deadline)
    os.close(again)

    assert (second.bytes, second.written) == (8 * BLOCK, 4 * BLOCK)
    first = gpu_index.decode((host / "snapshot/diapause-gpu.idx").read_bytes(), "first")
    later = gpu_index.decode((host / "again/diapause-gpu.idx").read_bytes(), "later")
    hashes = {a.id: [block[2:] for block in first.of(a)] for a in first.allocations}
    assert {a.id: [block[2:] for block in later.of(a)] for a in later.allocations} == {
        number: hashes[number] for number in (1, 3)
    }


def test_allocations_that_are_not_listed_any_more_are_let_go(
    saved, controller, container, directory, deadline, allocation, host
):
    (host / "again").mkdir()
    again = os.open(host / "again", os.O_RDONLY)
    controller.begin(container, deadline)
    controller.take(container, [allocation(3, 3)], {}, deadline)

    controller.save(container, again, deadline)
    controller.wait(container, deadline)
    os.close(again)

    assert [a.id for a in controller.held(container, deadline)] == [3]


def test_an_empty_list_is_an_empty_snapshot(controller, container, directory, deadline):
    controller.begin(container, deadline)
    controller.save(container, directory, deadline)

    saved = controller.wait(container, deadline)
    assert (saved.bytes, [name for name, _ in saved.files]) == (0, ["diapause-gpu.idx"])
    controller.load(container, directory, deadline)
    assert controller.wait(container, deadline).bytes == 0


def test_more_allocations_than_one_message_carries(
    controller, program, container, directory, deadline, allocation
):
    count = 120
    fds = program.make(*[[n] if n % 10 == 0 else [0] for n in range(count)])
    controller.begin(container, deadline)
    controller.take(container, [allocation(n, 1) for n in range(count)], dict(enumerate(fds)), deadline)
    controller.save(container, directory, deadline, sync=False)
    saved = controller.wait(container, deadline)
    controller.load(container, directory, deadline)
    controller.wait(container, deadline)

    assert (saved.bytes, saved.written) == (count * BLOCK, 11 * BLOCK)
    given = controller.give(container, 1, range(count), deadline)
    assert sorted(given) == list(range(count))
    for fd in given.values():
        os.close(fd)


@pytest.mark.parametrize("place", [0, BLOCK - 8, 11 * BLOCK + 4096])
def test_a_block_that_was_changed_on_the_disk_is_noticed(
    saved, controller, container, directory, deadline, host, index, place
):
    files = sorted((host / "snapshot").glob("*.img"))
    sizes = [path.stat().st_size for path in files]
    path = next(path for path, size in zip(files, sizes, strict=True) if size > place)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)
        file.seek(place)
        file.write(bytes([byte[0] ^ 1]))

    controller.load(container, directory, deadline)
    with pytest.raises(errors.InvalidArgument, match=r"gpu-data-damaged"):
        controller.wait(container, deadline)
    assert controller.held(container, deadline) == []


def test_a_data_file_that_is_too_short_is_noticed(saved, controller, container, directory, deadline, host):
    path = max((host / "snapshot").glob("*.img"), key=lambda path: path.stat().st_size)
    os.truncate(path, path.stat().st_size - 4096)

    controller.load(container, directory, deadline)
    with pytest.raises(errors.InvalidArgument, match=r"gpu-data-short"):
        controller.wait(container, deadline)


def test_a_missing_data_file_is_noticed_before_any_memory_is_made(
    saved, controller, container, directory, deadline, host
):
    next((host / "snapshot").glob("*.img")).unlink()

    with pytest.raises(errors.NotFound, match=r"gpu-data-missing"):
        controller.load(container, directory, deadline)
    assert controller.held(container, deadline) == []


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_an_index_that_is_no_file_is_refused(saved, controller, container, directory, deadline, host, kind):
    path = host / "snapshot/diapause-gpu.idx"
    path.rename(host / "elsewhere")
    if kind == "link":
        path.symlink_to(host / "elsewhere")
    else:
        os.mkfifo(path)

    with pytest.raises(errors.Internal, match=r"gpud-io"):
        controller.load(container, directory, deadline)


def test_an_index_that_the_manifest_does_not_name_is_refused(
    saved, controller, container, directory, deadline
):
    with pytest.raises(errors.InvalidArgument, match=r"gpu-index-digest"):
        controller.load(container, directory, deadline, digest="blake3:" + "0" * 64)


def test_a_save_replaces_nothing(controller, program, container, directory, deadline, allocation, host):
    precious = host / "snapshot/diapause-gpu-0.img"
    precious.write_text("mine")
    (fd,) = program.make([1, 2, 3])
    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 3)], {1: fd}, deadline)

    controller.save(container, directory, deadline)
    with pytest.raises(errors.Internal, match=r"gpud-io.*|File exists"):
        controller.wait(container, deadline)
    assert precious.read_text() == "mine"
    assert os.listdir(host / "snapshot") == [precious.name]


def test_a_save_that_fails_at_its_end_takes_its_files_back(
    controller, program, container, directory, deadline, allocation, host
):
    (host / "snapshot/diapause-gpu.idx").write_text("mine")
    (fd,) = program.make([1, 2, 3])
    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 3)], {1: fd}, deadline)

    controller.save(container, directory, deadline)
    with pytest.raises(errors.Internal, match="gpud-io"):
        controller.wait(container, deadline)
    assert os.listdir(host / "snapshot") == ["diapause-gpu.idx"]
    assert (host / "snapshot/diapause-gpu.idx").read_text() == "mine"


def test_a_save_that_fails_leaves_no_file(controller, program, container, deadline, allocation, host):
    (fd,) = program.make([1, 2, 3])
    (host / "gone").mkdir()
    directory = os.open(host / "gone", os.O_RDONLY)
    (host / "gone").rmdir()
    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 3)], {1: fd}, deadline)

    controller.save(container, directory, deadline)
    os.close(directory)
    with pytest.raises(errors.Internal, match=r"gpud-io"):
        controller.wait(container, deadline)
    # What failed was the disk: the container's memory is still held, and another save can be tried.
    assert [a.id for a in controller.held(container, deadline)] == [1]


def test_too_little_gpu_memory_is_a_clear_error(
    controller, program, container, directory, deadline, allocation
):
    fds = program.make(*[[0] * 40 for _ in range(3)])  # 240 MiB of 256
    controller.begin(container, deadline)
    controller.take(container, [allocation(n, 40) for n in range(3)], dict(enumerate(fds)), deadline)
    controller.save(container, directory, deadline)
    controller.wait(container, deadline)
    index = Path(f"/proc/self/fd/{directory}") / "diapause-gpu.idx"
    found = gpu_index.decode(index.read_bytes(), "test")
    found.allocations = [*found.allocations, allocation(9, 40)]
    index.write_bytes(
        gpu_index.encode(
            gpu_index.Index(
                devices=found.devices,
                files=found.files,
                allocations=found.allocations,
                blocks=[*found.blocks, *[gpu_index.ZERO] * 40],
            )
        )
    )

    with pytest.raises(errors.Unavailable, match=r"320 MiB are needed, 25\d MiB of 256 MiB .*\[gpu-memory\]"):
        controller.load(container, directory, deadline)
    assert controller.held(container, deadline) == []
