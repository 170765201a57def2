"""GPU data for tests: a directory with an index and data files, and snapshots that refer to it."""

import os
from pathlib import Path
from typing import Any

from diapause.runtime.store import digest, entry, gpu_index, manifest, snapshot
from diapause.runtime.store.blocks import Hashes
from diapause.runtime.store.entry import Entry
from diapause.runtime.store.gpu_index import BLOCK, ZERO, Allocation, Index
from diapause.runtime.store.local import Local

UUID = bytes(range(16))


def block(number: int) -> bytes:
    """Contents that compress well and differ from block to block."""
    return number.to_bytes(8, "little") * (BLOCK // 8)


def write(directory: Path) -> Index:
    """Two allocations of two processes: five blocks, one of them zeros, in two files with a free slot."""
    hashes = Hashes()

    def kept(file: int, slot: int, number: int) -> tuple[int, int, int, int]:
        first, second, _ = hashes.of(block(number), BLOCK)[0]
        with open(directory / f"diapause-gpu-{file}.img", "ab") as out:
            out.truncate(max(out.tell(), (slot + 1) * BLOCK))
        with open(directory / f"diapause-gpu-{file}.img", "r+b") as out:
            out.seek(slot * BLOCK)
            out.write(block(number))
        return (file, slot, first, second)

    index = Index(
        devices=[UUID],
        files=2,
        allocations=[
            Allocation(process=1, device=0, id=1, address=0x3_0000_0000, size=3 * BLOCK),
            Allocation(process=7, device=0, id=1, address=0, size=2 * BLOCK),
        ],
        blocks=[kept(0, 1, 11), ZERO, kept(1, 0, 12), kept(0, 0, 13), kept(0, 3, 14)],
    )
    (directory / "diapause-gpu.idx").write_bytes(gpu_index.encode(index))
    return index


def commit(image: Path, fields: dict[str, Any], index: Index, *, name: str = "", host: str = "") -> None:
    """Write the manifest of an image whose index lies in it; `name` is that of a local snapshot."""
    stated = manifest.gpu_data_entry(
        placement="local" if name else "embedded", name=name, host=host, bytes=index.bytes, zero=index.zero,
        allocations=len(index.allocations),
        index=digest.of_bytes((image / "diapause-gpu.idx").read_bytes()),
    )  # fmt: skip
    fields = {
        **fields,
        "features": {"required": [manifest.GPU_DATA], "optional": []},
        "evacuated": "intercept",
        "gpu_data": stated,
        "files": manifest.file_entries(snapshot.parts(str(image), {})),
    }
    snapshot.commit(str(image), manifest.Manifest(fields), sync=False)


def embedded(image: Path, fields: dict[str, Any]) -> Index:
    index = write(image)
    commit(image, fields, index)
    return index


def local(image: Path, fields: dict[str, Any], store: Local, name: str) -> Index:
    """The same in the local store."""
    draft = store.create(name, 5 * BLOCK)
    index = write(Path(draft.path))
    data = Path(draft.path, "diapause-gpu.idx").read_bytes()
    (image / "diapause-gpu.idx").write_bytes(data)
    described = Entry(
        kind=entry.GPU_DATA, id=str(fields["id"]), created=str(fields["created"]),
        index=digest.of_bytes(data), bytes=index.bytes, zero=index.zero,
        allocations=len(index.allocations), image=str(image),
    )  # fmt: skip
    draft.commit(described, sync=False)
    draft.close()
    commit(image, fields, index, name=name, host=os.uname().nodename)
    return index


def damage(path: Path, offset: int) -> None:
    """Flip a bit."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 4]))
