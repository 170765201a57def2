"""A container image made by hand: static busybox, the workloads, and what they are linked with."""

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

APPLETS = (
    "sh",
    "cat",
    "echo",
    "ls",
    "sleep",
    "true",
    "false",
    "mkdir",
    "head",
    "tail",
    "kill",
    "ps",
    "mount",
    "touch",
    "rm",
    "dd",
    "id",
    "env",
)
FOLDERS = (
    "bin",
    "dev",
    "etc",
    "lib",
    "lib64",
    "opt",
    "out",
    "proc",
    "root",
    "sys",
    "tmp",
    "usr",
    "usr/lib",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib64",
    "var",
)


C_LIBRARY = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")  # what a driver's libcuda needs


def _ldd(program: Path) -> str:
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=20, check=False)
    return done.stdout + done.stderr


def linked(programs: Iterable[Path]) -> set[Path]:
    """The shared objects (and the loader) that these programs name, by the names they use."""
    found: set[Path] = set()
    for program in programs:
        for name in re.findall(r"(?:=> )?(/\S+) \(0x", _ldd(program)):
            if "libcuda" not in name:  # comes from the CDI edit, never from the image
                found.add(Path(name))
    folders = {path.parent for path in found if path.name == "libc.so.6"}
    return found | {folder / name for folder in folders for name in C_LIBRARY if (folder / name).exists()}


class Layer:
    """One layer of an image, as a tar in memory."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w")  # noqa: SIM115  closed by `bytes`
        self._seen: set[str] = set()

    def folder(self, name: str, mode: int = 0o755) -> None:
        if name in self._seen or name in ("", "."):
            return
        self.folder(os.path.dirname(name))
        self._add(name, tarfile.DIRTYPE, mode)

    def link(self, name: str, target: str) -> None:
        self.folder(os.path.dirname(name))
        self._add(name, tarfile.SYMTYPE, 0o777, linkname=target)

    def file(self, name: str, data: bytes, mode: int = 0o755) -> None:
        self.folder(os.path.dirname(name))
        self._add(name, tarfile.REGTYPE, mode, data=data)

    def _add(self, name: str, kind: bytes, mode: int, *, linkname: str = "", data: bytes = b"") -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.linkname, info.size = kind, mode, linkname, len(data)
        self._tar.addfile(info, io.BytesIO(data))

    def bytes(self) -> bytes:
        self._tar.close()
        return self._buffer.getvalue()


def workload_layer(busybox: Path, programs: Mapping[str, Path]) -> bytes:
    """Static busybox with applets, `programs` as /opt/<name>, and their libraries where the loader looks."""
    layer = Layer()
    for folder in FOLDERS:
        layer.folder(folder, 0o1777 if folder == "tmp" else 0o755)
    layer.file("bin/busybox", busybox.read_bytes())
    for applet in APPLETS:
        layer.link(f"bin/{applet}", "busybox")
    for name, program in programs.items():
        layer.file(f"opt/{name}", program.read_bytes())
    for library in sorted(linked(programs.values())):
        layer.file(str(library).lstrip("/"), library.resolve().read_bytes())
    return layer.bytes()


def archive(path: Path, name: str, layer: bytes) -> None:
    """Write a docker-archive with one layer that `ctr image import` takes."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/bin:/opt"], "Cmd": ["/bin/sh"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    outer = Layer()
    outer.file("config.json", json.dumps(config).encode(), 0o644)
    outer.file("manifest.json", json.dumps(manifest).encode(), 0o644)
    outer.file("layer.tar", layer, 0o644)
    path.write_bytes(outer.bytes())


def unpack(layer: bytes, target: Path) -> None:
    """A rootfs folder from a layer, for a container without containerd."""
    target.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(target)], input=layer, check=True, timeout=60)
