"""The names of everything inside a snapshot: one flat directory, beside CRIU's own files."""

MANIFEST = "diapause.json"
PAGES_PREFIX = "pages-"  # CRIU's memory images; they only grow at the end while it writes them
IMAGE_SUFFIX = ".img"
LIBRARY = "diapause-libcuda.so.1"  # ours, as the processes have it loaded
DESCRIPTORS = "descriptors.json"  # runc: where stdin, stdout and stderr led
GPU_INDEX = "diapause-gpu.idx"  # which block of device memory lies where in the data files
GPU_PREFIX = "diapause-gpu-"  # and a number: the data files, in slots of one block

# Written or changed after the commit, by CRIU and by clients: no part of the snapshot.
VOLATILE = frozenset({MANIFEST, "dump.log", "restore.log", "stats-dump", "stats-restore", "cgroup.cfg"})

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def is_flat(name: str) -> bool:
    """Whether a name stays in the directory and is a plain one."""
    return 0 < len(name) <= 255 and name[0] not in ".-" and _ALLOWED.issuperset(name)


def is_part(name: str) -> bool:
    """Whether a file in the directory belongs to the snapshot (logs and strangers do not)."""
    return name not in VOLATILE and (name.endswith(IMAGE_SUFFIX) or name in (DESCRIPTORS, LIBRARY, GPU_INDEX))


def gpu_data(number: int) -> str:
    """The name of a data file."""
    return f"{GPU_PREFIX}{number}{IMAGE_SUFFIX}"


def gpu_number(name: str) -> int | None:
    """The number of a data file, None for any other file."""
    number = name.removeprefix(GPU_PREFIX).removesuffix(IMAGE_SUFFIX)
    if number.isascii() and number.isdigit() and len(number) <= 9 and gpu_data(int(number)) == name:
        return int(number)
    return None


def is_temporary(path: str) -> bool:
    """Whether a client packs this image directory and deletes it right away.

    containerd names them ctrd-checkpointN (1.6: ctd-checkpointN); CRI adds a folder of the plain name.
    """
    for part in path.rstrip("/").split("/"):
        for prefix in ("ctrd-checkpoint", "ctd-checkpoint"):
            if part.startswith(prefix) and part[len(prefix) :].isdigit():
                return True
    return False
