"""What a runc leaves behind that was killed in the middle of a restore.

It has bound the rootfs to <root>/<id>/criu-root, and for a moment the source of every bind mount into the
rootfs, in the mount namespace of the host. While these mounts are there, `runc delete --force` deletes files
of the rootfs and of volumes through them, and then keeps the id (1.1.5 and 1.5.3). Its CRIU notices that
runc is gone, and ends with what it made. That takes a moment, and if it was killed too, nobody does it.
"""

from __future__ import annotations

import errno
import os

from diapause.runtime.engine import bundle, runc
from diapause.runtime.linux import mounts, pidfd, proc, signals
from diapause.runtime.linux.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from diapause.runtime.engine.request import RestoreRequest

_ENDS = 10.0  # seconds for CRIU to take back what it did, and again after SIGKILL
_NO_MOUNT = (errno.EINVAL, errno.ENOENT, errno.ENOTDIR)
_CGROUPS = "/sys/fs/cgroup"


def before(request: RestoreRequest) -> dict[str, Any]:
    """Facts for the journal, from the time before runc is started."""
    config = bundle.config(request.bundle)
    path = (config.get("root") or {}).get("path") or "rootfs"
    rootfs = os.path.realpath(os.path.join(request.bundle, path))
    return {
        "log": os.path.realpath(f"{request.work_path or request.image_path}/restore.log"),
        "rootfs": rootfs,
        "mounts": _inside(rootfs),
        "cgroup": (config.get("linux") or {}).get("cgroupsPath") or "",
    }


def mounted(root: str, container_id: str) -> list[str]:
    """The mount points through which runc would delete what is not its own."""
    place = _criu_root(root, container_id)
    return mounts.below([place]) if os.path.lexists(place) else []


def clear(root: str, container_id: str, facts: Mapping[str, Any]) -> None:
    """Take away what is there of it. `facts` are those of before(), and `child`: pid and start time of runc.

    Raises OSError or TimeoutError when something stays; runc must not delete the container then.
    """
    if child := facts.get("child"):
        _end_runc(*child)
    known = runc.exists(root, container_id)
    if not known and facts.get("log"):
        _end_criu(facts["log"])
    _detach(mounted(root, container_id))
    if facts.get("rootfs"):
        _detach(_added(facts["mounts"], _inside(facts["rootfs"])))
    if not known and facts.get("cgroup", "").startswith("/"):
        _remove_cgroup(facts["cgroup"])


def _criu_root(root: str, container_id: str) -> str:
    return f"{os.path.realpath(root)}/{container_id}/criu-root"


def _inside(rootfs: str) -> list[str]:
    return [point for point in mounts.below([rootfs]) if point != rootfs]


def _added(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """A place may have several mounts on it: each of those before stands for one."""
    rest = list(before)
    added = []
    for point in now:
        if point in rest:
            rest.remove(point)
        else:
            added.append(point)
    return added


def _detach(points: Iterable[str]) -> None:
    """The last first; one may be gone with another that it was propagated from."""
    for point in reversed(list(points)):
        try:
            mounts.detach(point)
        except OSError as error:
            if error.errno not in _NO_MOUNT:
                raise


def _end_runc(pid: int, start: int) -> None:
    """The parent-death signal is on its way to it, but the lease was free before."""
    _end(pid, lambda: proc.is_alive(pid, start), Deadline.after(_ENDS))


def _end_criu(log: str) -> None:
    """Wait until nobody has the log open for writing: CRIU hands it down to all that it forks. Then kill."""
    from functools import partial

    patience, limit = Deadline.after(_ENDS), Deadline.after(2 * _ENDS)
    while writers := _writers(log):
        for pid in writers:
            if not _ended(pid, patience):
                _end(pid, partial(_writes, pid, log), limit)


def _ended(pid: int, deadline: Deadline) -> bool:
    """Wait for the end of a process; whether it came in time."""
    try:
        fd = pidfd.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return pidfd.exited(fd, deadline)
    finally:
        os.close(fd)


def _end(pid: int, still: Callable[[], bool], deadline: Deadline) -> None:
    """SIGKILL, if it is `still` the process that was meant. Raises TimeoutError."""
    try:
        fd = pidfd.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if still():
            pidfd.pidfd_send_signal(fd, signals.SIGKILL)
            if not pidfd.exited(fd, deadline):
                raise TimeoutError(110, "it does not end", f"process {pid}")
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)


def _writers(path: str) -> list[int]:
    found = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in found if pid != os.getpid() and _writes(pid, path)]


def _writes(pid: int, path: str) -> bool:
    """Whether the process has the file open for writing; others may well read a log."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") == path and os.lstat(f"{folder}/{name}").st_mode & 0o200:
                return True
        except OSError:
            continue
    return False


def _remove_cgroup(path: str) -> None:
    """Of every hierarchy; the kernel keeps one that has processes or groups in it."""
    for top in (_CGROUPS, *(f"{_CGROUPS}/{name}" for name in os.listdir(_CGROUPS))):
        try:
            os.rmdir(f"{top}{os.path.normpath(path)}")
        except OSError:
            continue
