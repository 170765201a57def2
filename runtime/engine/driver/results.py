"""Names of the driver's numbers, as far as its checkpoint calls return them."""

from __future__ import annotations

RUNNING, LOCKED, CHECKPOINTED, FAILED = range(4)  # CUprocessState
STATES = ("running", "locked", "checkpointed", "failed")

SUCCESS = 0
OUT_OF_MEMORY = 2
NOT_INITIALIZED = 3
NOT_READY = 600
NOT_SUPPORTED = 801

_NAMES = {
    1: "INVALID_VALUE",
    OUT_OF_MEMORY: "OUT_OF_MEMORY",
    NOT_INITIALIZED: "NOT_INITIALIZED",
    4: "DEINITIALIZED",
    34: "STUB_LIBRARY",
    46: "DEVICE_UNAVAILABLE",
    100: "NO_DEVICE",
    101: "INVALID_DEVICE",
    201: "INVALID_CONTEXT",
    304: "OPERATING_SYSTEM",
    400: "INVALID_HANDLE",
    401: "ILLEGAL_STATE",
    500: "NOT_FOUND",
    NOT_READY: "NOT_READY",
    NOT_SUPPORTED: "NOT_SUPPORTED",
    802: "SYSTEM_NOT_READY",
    803: "SYSTEM_DRIVER_MISMATCH",
    804: "COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "UNKNOWN",
}


def name(result: int) -> str:
    """A CUresult in words and as its number."""
    return f"CUDA_ERROR_{_NAMES[result]} ({result})" if result in _NAMES else f"CUresult {result}"


def state(value: int) -> str:
    return STATES[value] if 0 <= value < len(STATES) else f"state {value}"
