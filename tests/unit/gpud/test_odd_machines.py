"""Machines that lack something: a compiler of kernels, room, direct I/O."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from diapause.runtime import errors
from diapause.runtime.gpud import gpu as gpu_module
from diapause.runtime.gpud import job as jobs
from diapause.runtime.gpud.cuda import CudaError
from diapause.runtime.gpud.job import Job, as_error
from diapause.runtime.gpud.pool import BUFFER
from diapause.runtime.gpud.target import Target, index_name
from diapause.runtime.gpud.writers import _File
from diapause.runtime.store.gpu_index import BLOCK

GPU = "GPU-d1a9a05e-50f7-4000-8000-000000000000"


def test_without_a_compiler_of_kernels_blocks_are_hashed_on_the_cpu(
    libcuda, host, monkeypatch, connect, program, container, directory, deadline, allocation
):
    native = host / "native-without"
    shutil.copytree(Path(libcuda).parents[1] / "lib", native / "lib")
    (native / "lib/block_hash.ptx").write_text("no kernel")
    monkeypatch.setenv("DIAPAUSE_NATIVE_DIR", str(native))
    seeds = [1, 0, -2, 0, 3] * 5
    (fd,) = program.make(seeds)
    controller = connect()

    controller.begin(container, deadline)
    controller.take(container, [allocation(1, 25)], {1: fd}, deadline)
    controller.save(container, directory, deadline)
    saved = controller.wait(container, deadline)
    controller.load(container, directory, deadline)
    controller.wait(container, deadline)

    assert (saved.written, saved.zero) == (15 * BLOCK, 10 * BLOCK)
    assert "hashed on the CPU" in (host / f"run/gpud/{GPU}/log").read_text()


class Ends:
    """Memory for a file that a test writes."""

    def __init__(self) -> None:
        import mmap

        self.view = memoryview(mmap.mmap(-1, BUFFER))


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("sync", [True, False])
def test_a_data_file_ends_where_its_slots_end(directory, host, direct, sync):
    target = Target(directory)
    number, fd = target.create(direct=direct)
    file = _File(number, fd, direct=direct, sync=sync)
    view = Ends().view
    view[:BLOCK] = b"\1" * BLOCK
    view[BLOCK : 2 * BLOCK] = b"\2" * BLOCK

    first = file.append(view, SimpleNamespace(blocks=2, size=2 * BLOCK))
    second = file.append(view, SimpleNamespace(blocks=1, size=BLOCK - 8))
    file.close()

    assert (first, second) == (0, 2)
    data = (host / "snapshot/diapause-gpu-0.img").read_bytes()
    assert data == b"\1" * BLOCK + b"\2" * BLOCK + b"\1" * (BLOCK - 8) + bytes(8)


def test_the_files_of_a_second_gpu_have_other_names(directory, host):
    target = Target(directory, part=2)
    assert target.files == 0
    number, fd = target.create(direct=False)
    os.close(fd)

    assert (number, target.files, target.index_name) == (512, 513, "diapause-gpu.idx.2")
    assert index_name(0) == "diapause-gpu.idx"
    target.remove()
    assert os.listdir(directory) == []


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "f"), "gpud-no-space", errors.Unavailable),
        (OSError(errno.EIO, "Input/output error"), "gpud-io", errors.Internal),
        (CudaError("cuMemMap", 2, "CUDA_ERROR_OUT_OF_MEMORY"), "gpud-short", errors.Unavailable),
        (CudaError("cuMemMap", 700, "CUDA_ERROR_ILLEGAL_ADDRESS"), "gpud-driver", errors.Internal),
        (jobs.Cancelled(), "gpud-cancelled", errors.Unavailable),
        (ZeroDivisionError("x"), "gpud-bug", errors.Internal),
        (errors.NotFound("a-b", "c", "d"), "a-b", errors.NotFound),
    ],
)
def test_every_exception_becomes_an_error_that_says_what_to_do(error, code, kind):
    found = as_error(error, "save")
    assert (found.code, type(found)) == (code, kind)


def test_a_job_that_is_given_up_ends_between_two_pieces():
    def work(job):
        while True:
            job.advance(1)

    job = Job("save", "c", 10, work)
    job.start()
    assert not job.wait(0.01)

    job.cancel()

    assert job.done
    assert job.error is not None
    assert job.error.code == "gpud-cancelled"
    assert job.progress > 0


def test_the_pool_never_takes_more_than_a_share_of_the_host():
    assert gpu_module._host_memory() // gpu_module._SHARE < gpu_module._host_memory() / 7
