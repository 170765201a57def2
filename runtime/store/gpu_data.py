"""The GPU data of a snapshot: its index and its data files, wherever they are."""

from __future__ import annotations

import os

from diapause.runtime.errors import InvalidArgument, NotFound
from diapause.runtime.linux import files
from diapause.runtime.linux.owned import Owned
from diapause.runtime.store import digest, gpu_index, layout
from diapause.runtime.store.gpu_index import BLOCK, NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from diapause.runtime.store.blocks import Hashes
    from diapause.runtime.store.gpu_index import Allocation, Index
    from diapause.runtime.store.local import Local
    from diapause.runtime.store.snapshot import Snapshot

    Kept = tuple[Allocation, int, tuple[int, int, int, int]]

_AGAIN = "the snapshot is damaged: take it anew or copy it again"


class Damage:
    """A block whose content is not what the index says."""

    __slots__ = ("allocation", "file", "offset", "slot", "why")

    def __init__(self, *, allocation: Allocation, offset: int, file: int, slot: int, why: str) -> None:
        self.allocation = allocation
        self.offset = offset  # of the block in the allocation, in bytes
        self.file = file  # number of the data file
        self.slot = slot
        self.why = why

    def __str__(self) -> str:
        a = self.allocation
        place = f"{layout.gpu_data(self.file)} at byte {self.slot * BLOCK}"
        return f"allocation {a.id} of process {a.process} at byte {self.offset}: {place} {self.why}"


class GpuData:
    """An index that is sound in itself, with a directory that has it and all data files in full length."""

    def __init__(self, where: str, fd: int, index: Index, owned: Owned) -> None:
        self.where = where  # the directory, for messages
        self.fd = fd  # of the directory; owned by this object
        self.index = index
        self._owned = owned

    @classmethod
    def open(cls, snapshot: Snapshot, local: Local) -> GpuData:
        """What the manifest of the snapshot names; it must name something.

        A local one is not removed until close(). Raises NotFound (snapshot-local-missing, gpu-data-missing),
        InvalidArgument (gpu-data-short, gpu-data-differs and those of the index).
        """
        stated = snapshot.document.gpu_data
        if stated is None:
            raise ValueError(f"{snapshot.path} has no GPU data")
        owned = Owned()
        try:
            if stated["placement"] == "local":
                held = owned.enter(local.open(stated["name"], host=stated["host"]))
                fd, where = held.fd, held.path
            else:
                fd, where = snapshot.dup(), snapshot.path
                owned.callback(os.close, fd)
            index = _read(fd, f"snapshot {where}", stated["index"])
            sums = {"bytes": index.bytes, "zero": index.zero, "allocations": len(index.allocations)}
            for name, value in sums.items():
                if stated[name] != value:
                    why = f"its index has {value} {name}, its manifest says {stated[name]}"
                    raise InvalidArgument("gpu-data-differs", f"snapshot {where}", why, _AGAIN)
            found = cls(where, fd, index, owned)
            found._check_files()
        except BaseException:
            owned.close()
            raise
        return found

    @classmethod
    def of_directory(cls, where: str, fd: int, expected: str) -> GpuData:
        """What lies in a directory; the caller keeps `fd`. `expected` is the digest of the index, "" for any.

        Raises as open().
        """
        index = _read(fd, f"snapshot {where}", expected)
        found = cls(where, fd, index, Owned())
        found._check_files()
        return found

    def _check_files(self) -> None:
        for number, slots in enumerate(self.index.slots()):
            if slots:
                os.close(self.open_file(number, slots))

    def open_file(self, number: int, slots: int = 0) -> int:
        """A descriptor of a data file that has so many slots; the caller owns it. Raises as open()."""
        name, where = layout.gpu_data(number), f"snapshot {self.where}"
        try:
            fd = files.open_regular(name, dir_fd=self.fd)
        except FileNotFoundError:
            raise NotFound("gpu-data-missing", where, f"{name} is missing", _AGAIN) from None
        except OSError as e:
            why = f"{name}: {(e.strerror or '').lower()}"
            raise InvalidArgument("gpu-data-unreadable", where, why, _AGAIN) from None
        size = os.fstat(fd).st_size
        if size < slots * BLOCK:
            os.close(fd)
            why = f"{name} has {size} bytes, its index needs {slots * BLOCK}"
            raise InvalidArgument("gpu-data-short", where, why, _AGAIN)
        return fd

    def kept(self) -> Iterator[Kept]:
        """Every block that lies in a file: its allocation, its offset there in bytes, and the block."""
        for allocation in self.index.allocations:
            for number, block in enumerate(self.index.of(allocation)):
                if block[0] != NOWHERE:
                    yield allocation, number * BLOCK, block

    def damages(self, progress: Callable[[int], None] = lambda _: None) -> Iterator[Damage]:
        """Read everything and compare the hashes, on several CPUs; `progress` gets bytes done so far."""
        from concurrent.futures import ThreadPoolExecutor

        from diapause.runtime.store.blocks import Hashes

        hashes = Hashes()
        descriptors = [self.open_file(n) if slots else -1 for n, slots in enumerate(self.index.slots())]

        def check(item: Kept) -> Damage | None:
            allocation, offset, (file, slot, *expected) = item
            why = fault_of_block(hashes, descriptors[file], slot, expected)
            if not why:
                return None
            return Damage(allocation=allocation, offset=offset, file=file, slot=slot, why=why)

        workers = min(8, os.cpu_count() or 1)
        done = 0
        try:
            with ThreadPoolExecutor(workers) as pool:
                for batch in _batches(self.kept(), 4 * workers):
                    yield from filter(None, pool.map(check, batch))
                    done += len(batch) * BLOCK
                    progress(done)
        finally:
            for fd in descriptors:
                if fd >= 0:
                    os.close(fd)

    def touch(self) -> None:
        """Note that it was used now: what was not used for long may be pruned."""
        os.utime(self.fd)

    def close(self) -> None:
        self._owned.close()

    def __enter__(self) -> GpuData:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fault_of_block(hashes: Hashes, fd: int, slot: int, expected: list[int]) -> str:
    """What is wrong with the block in a slot, "" for nothing."""
    data = bytearray(BLOCK)
    try:
        if os.preadv(fd, [data], slot * BLOCK) != BLOCK:
            return "ends in the middle"
    except OSError as e:
        return f"cannot be read: {(e.strerror or '').lower()}"
    first, second, _ = hashes.of(data, BLOCK)[0]
    return "" if [first, second] == expected else "has another hash"


def adopt(snapshot: str, directory: str) -> str:
    """Copy the index of a local snapshot into an image directory; its digest. Raises OSError."""
    data = files.read_regular(f"{directory}/{layout.GPU_INDEX}", limit=gpu_index.MAX_BYTES)
    files.write_atomic(f"{snapshot}/{layout.GPU_INDEX}", data, mode=layout.FILE_MODE, sync=False)
    return digest.of_bytes(data)


def _read(directory: int, where: str, expected: str) -> Index:
    """The index in a directory; `expected` is its digest, "" for any."""
    try:
        data = files.read_regular(layout.GPU_INDEX, limit=gpu_index.MAX_BYTES, dir_fd=directory)
    except FileNotFoundError:
        raise NotFound("gpu-data-missing", where, f"{layout.GPU_INDEX} is missing", _AGAIN) from None
    except OSError as e:
        why = f"{layout.GPU_INDEX}: {(e.strerror or '').lower()}"
        raise InvalidArgument("gpu-data-unreadable", where, why, _AGAIN) from None
    if expected and (found := digest.of_bytes(data)) != expected:
        raise InvalidArgument("gpu-data-differs", where, f"its index has digest {found}", _AGAIN)
    return gpu_index.decode(data, where)


def _batches(items: Iterator[Kept], size: int) -> Iterator[list[Kept]]:
    from itertools import islice

    while batch := list(islice(items, size)):
        yield batch
