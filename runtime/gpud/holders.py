"""Which processes hold memory of a GPU, as NVML knows it: for a message, so never an error of its own."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p

from diapause.runtime.gpud.names import uuid_text
from diapause.runtime.linux import proc

_MOST = 64  # processes that are asked for
_NAMED = 3  # of them in a message
_UNKNOWN = 1 << 63  # NVML's way to say that it does not know: all bits set


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = (
        ("pid", c_uint),
        ("used", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    )


def describe(library: str, uuid: bytes) -> str:
    """The greatest holders in words, "" if there is nothing to tell. `library` is libnvidia-ml's path."""
    try:
        found = _ask(library, uuid)
    except (OSError, AttributeError):
        return ""
    found.sort(reverse=True)
    words = [f"process {pid} ({_name(pid)}) has {used >> 20} MiB" for used, pid in found[:_NAMED]]
    return ", ".join(words)


def _ask(library: str, uuid: bytes) -> list[tuple[int, int]]:
    """Bytes and pid of each. Raises OSError, AttributeError for a library that is not there or too old."""
    if not library:
        return []
    nvml = ctypes.CDLL(library)
    if nvml.nvmlInit_v2():
        return []
    try:
        device = c_void_p()
        if nvml.nvmlDeviceGetHandleByUUID(uuid_text(uuid).encode(), byref(device)):
            return []
        count = c_uint(_MOST)
        processes = (_Process * _MOST)()
        ask = nvml.nvmlDeviceGetComputeRunningProcesses_v3
        ask.restype = c_int
        if ask(device, byref(count), processes):
            return []
        return [(p.used, p.pid) for p in processes[: count.value] if p.used < _UNKNOWN]
    finally:
        nvml.nvmlShutdown()


def _name(pid: int) -> str:
    try:
        return proc.comm(pid)
    except OSError:
        return "of another pid namespace"
