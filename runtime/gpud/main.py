"""diapause-gpud: one process for each GPU, started by whoever needs it first."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import socket
import sys

from diapause.runtime import config, private
from diapause.runtime.container import run_dir
from diapause.runtime.gpud import cgroup, keep, log, names
from diapause.runtime.gpud.keeper import Keeper
from diapause.runtime.linux.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.gpud.keeper import Kept
    from diapause.runtime.gpud.ops import Operations


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="diapause-gpud", description=__doc__)
    parser.add_argument("--gpu", required=True, metavar="UUID", help="as nvidia-smi -L prints it")
    parser.add_argument("--libcuda", required=True, metavar="FILE", help="the driver's libcuda")
    arguments = parser.parse_args(argv)
    if not names.is_gpu(arguments.gpu):
        parser.error(f"{arguments.gpu!r} is no UUID of a GPU")
    if not os.path.isabs(arguments.libcuda):
        parser.error(f"{arguments.libcuda!r} is no absolute path")
    settings = config.load()
    os.umask(0o077)
    directory = private.make(run_dir(), "gpud", arguments.gpu)
    lock = Lock.try_take(f"{directory}/lock")
    if lock is None:
        return 0  # there is one already; whoever started us finds it
    lock.write(f"{os.getpid()}\n")
    _detach()
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", arguments.gpu)  # the others are none of our business
    listening = _listen(directory)
    log.write("info", "start", gpu=arguments.gpu, libcuda=arguments.libcuda, pid=os.getpid())
    try:
        return keep.run(
            lambda end, kept: _serve(listening, end, kept, (arguments.gpu, arguments.libcuda, settings))
        )
    finally:
        try:
            os.unlink(names.socket_path(arguments.gpu))  # while the lock is ours, and not a successor's
        except FileNotFoundError:
            pass  # somebody removed the whole directory
        log.write("info", "end", gpu=arguments.gpu)


def _serve(
    listening: socket.socket, end: socket.socket, kept: Kept, opened: tuple[str, str, config.Config]
) -> None:
    """What the child does. Threads and CUDA are imported here: the keeper stays small."""
    from diapause.runtime.gpud.gpu import Gpu
    from diapause.runtime.gpud.holdings import Holdings
    from diapause.runtime.gpud.ops import Operations
    from diapause.runtime.gpud.server import Server

    settings = opened[2]
    holdings = Holdings(Keeper(end))
    kept.fill(holdings)

    def open_operations() -> Operations:
        return Operations(Gpu(*opened), holdings, patience=settings.gpu_memory_wait)

    path = names.socket_path(opened[0])
    Server(listening, path, open_operations, idle=settings.gpu_idle_timeout).serve()


def _detach() -> None:
    """Leave the session, the cgroup and the limits of whoever started us."""
    try:
        os.setsid()
    except PermissionError:
        pass  # started as the leader of a group, by a shell
    os.chdir("/")
    cgroup.leave()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (1 << 20, hard):  # a file descriptor for every allocation
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
            break
        except (ValueError, OSError):
            continue
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _listen(directory: str) -> socket.socket:
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            os.unlink("socket", dir_fd=fd)
        except FileNotFoundError:
            pass
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        listening.bind(names.near(fd))
        os.chmod("socket", 0o600, dir_fd=fd)
        listening.listen(64)
        return listening
    finally:
        os.close(fd)


if __name__ == "__main__":
    sys.exit(main())
