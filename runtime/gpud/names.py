"""Where the controller of a GPU is found, and how GPUs are called.

/run/diapause/gpud/<uuid>/   0700; socket  lock  log
"""

from __future__ import annotations

import re

from diapause.runtime.container import run_dir

_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CONTAINER = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")


def is_gpu(text: str) -> bool:
    """Whether it is a UUID as nvidia-smi prints it."""
    return _UUID.fullmatch(text) is not None


def is_container(text: str) -> bool:
    """Whether it can be the key of a container: it becomes part of paths and of log lines."""
    return _CONTAINER.fullmatch(text) is not None


def uuid_text(uuid: bytes, *, mig: bool = False) -> str:
    """The 16 bytes as nvidia-smi prints them."""
    digits = uuid.hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"{'MIG' if mig else 'GPU'}-{'-'.join(parts)}"


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a UUID for which is_gpu() holds."""
    return bytes.fromhex(text[4:].replace("-", ""))


def directory(gpu: str) -> str:
    return f"{run_dir()}/gpud/{gpu}"


def socket_path(gpu: str) -> str:
    return f"{directory(gpu)}/socket"


def near(directory: int) -> str:
    """The socket in a directory that is open, by a path that fits into an address: 107 bytes."""
    return f"/proc/self/fd/{directory}/socket"
