"""A container image made by hand: busybox, the counter, and this host's C library. No registry is asked."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from diapause.runtime.errors import FailedPrecondition

NAME = "localhost/counter:demo"
_APPLETS = ("sh", "cat", "ls", "ps", "sleep")
_FOLDERS = ("bin", "dev", "etc", "lib", "lib64", "out", "proc", "sys", "tmp", "usr/lib", "usr/lib64")
_LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What a real libcuda needs besides libc; a program need not name them.
_COMPANIONS = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1")


def write(archive: Path, busybox: Path, program: Path, arguments: Sequence[str]) -> None:
    """An archive for `ctr image import` that runs `program` with `arguments`."""
    layer = _Tar()
    for name in _FOLDERS:
        layer.folder(name)
    layer.file("bin/busybox", busybox.read_bytes())
    for applet in _APPLETS:
        layer.link(f"bin/{applet}", "busybox")
    layer.file(f"bin/{program.name}", program.read_bytes())
    for library in libraries(program):
        layer.file(str(library), library.read_bytes())
    data = layer.close()
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": [f"/bin/{program.name}", *arguments]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    outer = _Tar()
    outer.file("config.json", json.dumps(config).encode())
    outer.file("manifest.json", json.dumps(manifest).encode())
    outer.file("layer.tar", data)
    archive.write_bytes(outer.close())


def libraries(program: Path) -> list[Path]:
    """The loader and the libraries of this host that the program is run with, libcuda excepted."""
    loader = Path(_LOADERS[platform.machine()])
    if not loader.exists():
        raise FailedPrecondition(
            "glibc-missing", "demo image", f"this host has no {loader}",
            "run the demo on a distribution with the GNU C library",
        )  # fmt: skip
    listed = subprocess.run([loader, "--list", program], check=False, capture_output=True, text=True).stdout
    found = {Path(path) for path in re.findall(r"=> (/\S+)", listed) if "libcuda" not in path}
    return sorted({loader, *found, *_companions(found)})


def _companions(found: Iterable[Path]) -> Iterable[Path]:
    folders = {path.parent for path in found if path.name == "libc.so.6"}
    return (folder / name for folder in folders for name in _COMPANIONS if (folder / name).exists())


class _Tar:
    """A tar in memory; folders above a file are made."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w")  # noqa: SIM115 (closed by close())
        self._folders = {""}

    def folder(self, name: str) -> None:
        parent, _, _ = name.rpartition("/")
        if parent not in self._folders:
            self.folder(parent)
        if name not in self._folders:
            self._folders.add(name)
            self._add(name, tarfile.DIRTYPE)

    def file(self, name: str, data: bytes) -> None:
        self.folder(name.strip("/").rpartition("/")[0])
        self._add(name.strip("/"), tarfile.REGTYPE, data=data)

    def link(self, name: str, target: str) -> None:
        self._add(name, tarfile.SYMTYPE, target=target)

    def close(self) -> bytes:
        self._tar.close()
        return self._buffer.getvalue()

    def _add(self, name: str, kind: bytes, *, target: str = "", data: bytes = b"") -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.linkname, info.size = kind, 0o755, target, len(data)
        self._tar.addfile(info, io.BytesIO(data))
