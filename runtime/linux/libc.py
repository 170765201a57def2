"""libc and the system calls without a wrapper, bound once with their types."""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)


class OpenHow(ctypes.Structure):
    """struct open_how of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class MountAttr(ctypes.Structure):
    """struct mount_attr of mount_setattr(2)."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd"))


def _bind(name: str, result: type, *arguments: type) -> "ctypes._FuncPointer":
    function = _libc[name]
    function.restype = result
    function.argtypes = arguments
    return function


_syscall = _bind("syscall", ctypes.c_long)
del _syscall.argtypes  # variadic: each caller below converts
_ptrace = _bind("ptrace", ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_prctl = _bind("prctl", ctypes.c_int, ctypes.c_int, *[ctypes.c_ulong] * 4)
_mount = _bind("mount", ctypes.c_int, *[ctypes.c_char_p] * 3, ctypes.c_ulong, ctypes.c_char_p)
_umount2 = _bind("umount2", ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
_unshare = _bind("unshare", ctypes.c_int, ctypes.c_int)
_setns = _bind("setns", ctypes.c_int, ctypes.c_int, ctypes.c_int)
_signalfd = _bind("signalfd", ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_sync_file_range = _bind("sync_file_range", ctypes.c_int, ctypes.c_int, *[ctypes.c_int64] * 2, ctypes.c_uint)
_madvise = _bind("madvise", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_fstatfs = _bind("fstatfs", ctypes.c_int, ctypes.c_int, ctypes.c_void_p)

# The numbers of asm-generic/unistd.h: the same on every architecture since Linux 5.1.
SYS_PIDFD_SEND_SIGNAL = 424
SYS_OPENAT2 = 437
SYS_PIDFD_GETFD = 438
SYS_MOUNT_SETATTR = 442
SYS_TGKILL = {"x86_64": 234, "aarch64": 131}
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}
SYS_STATX = {"x86_64": 332, "aarch64": 291}

PR_SET_PDEATHSIG = 1
SFD_CLOEXEC = os.O_CLOEXEC
SFD_NONBLOCK = os.O_NONBLOCK
SYNC_FILE_RANGE_WRITE = 2


def check(result: int, path: str | None = None) -> int:
    """`result` of a libc call; -1 becomes the OSError of errno, with the object it was about."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def syscall(number: int, *arguments: "int | ctypes.Structure | ctypes.Array[ctypes.c_char]") -> int:
    """A raw system call; returns what the kernel does, -1 with errno in ctypes."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else ctypes.byref(a) for a in arguments]
    return int(_syscall(ctypes.c_long(number), *converted))


def ptrace(request: int, tid: int, address: int = 0, data: int = 0) -> int:
    """ptrace(2); raises OSError with the thread's number as its path."""
    ctypes.set_errno(0)
    return check(_ptrace(request, tid, address, data), f"thread {tid}")


def prctl(option: int, *arguments: int) -> int:
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return check(_prctl(option, *padded), f"prctl {option}")


def umount2(path: str, flags: int) -> None:
    check(_umount2(os.fsencode(path), flags), path)


def unshare(flags: int) -> None:
    check(_unshare(flags), f"unshare {flags:#x}")


def setns(fd: int, kind: int) -> None:
    check(_setns(fd, kind), f"namespace {kind:#x}")


def signalfd(mask: int) -> int:
    """A close-on-exec, non-blocking fd that reads the signals of `mask` (bit n-1 is signal n)."""
    words = ctypes.c_uint64 * 16  # glibc's sigset_t; the kernel looks at the first word
    return check(_signalfd(-1, ctypes.byref(words(mask)), SFD_CLOEXEC | SFD_NONBLOCK), "signalfd")


def start_writeback(fd: int, offset: int, size: int) -> None:
    """Have the kernel begin to write a range of a file to its disk, without a wait for the end."""
    check(_sync_file_range(fd, offset, size, SYNC_FILE_RANGE_WRITE), f"fd {fd}")


def madvise(address: int, size: int, advice: int) -> None:
    """madvise(2), with the GIL free: to fault some GiB in takes a second."""
    check(_madvise(address, size, advice), f"{size} bytes of memory")


class Timespec(ctypes.Structure):
    """struct timespec."""

    _fields_ = (("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64))


def futex_wait(word: ctypes.c_uint32, value: int, seconds: float) -> None:
    """Wait while a word that processes share holds `value`, for so long at most. May return early."""
    time = Timespec(int(seconds), int(seconds % 1 * 1e9))
    syscall(SYS_FUTEX[os.uname().machine], ctypes.addressof(word), 0, value, time)


def fstatfs(fd: int, buffer: "ctypes.Array[ctypes.c_char]") -> None:
    """Fill `buffer` with struct statfs."""
    check(_fstatfs(fd, buffer), f"fd {fd}")


def tgkill(process: int, thread: int, number: int) -> None:
    call = SYS_TGKILL[os.uname().machine]
    check(syscall(call, process, thread, number), f"thread {thread}")
