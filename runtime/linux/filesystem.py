"""What kind of file system something lies on."""

import ctypes

from diapause.runtime.linux import libc

_IN_MEMORY = frozenset({0x01021994, 0x858458F6, 0x958458F6})  # tmpfs, ramfs, hugetlbfs
_STATFS = 256  # bytes: struct statfs has 120, with the type in its first word on 64-bit machines


def kind(fd: int) -> int:
    """The magic number of the file system, as in linux/magic.h."""
    buffer = ctypes.create_string_buffer(_STATFS)
    libc.fstatfs(fd, buffer)
    return int.from_bytes(buffer.raw[:8], "little") & 0xFFFFFFFF


def in_memory(fd: int) -> bool:
    """Whether what is written there is in memory and nowhere else."""
    return kind(fd) in _IN_MEMORY
