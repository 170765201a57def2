"""diapause.json: what a snapshot consists of, and what it needs to come back.

Written last, so a directory without it is no snapshot. The reader is strict: everything in it was
perhaps written by somebody else. docs/snapshot-format.md is the specification.
"""

from __future__ import annotations

from diapause.runtime import json
from diapause.runtime.errors import InvalidArgument
from diapause.runtime.store import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MAGIC = "diapause-snapshot"
VERSION = 1
GPU_DATA = "gpu-data"
FEATURES = frozenset({GPU_DATA})  # the required features that this reader knows
PLACEMENTS = ("embedded", "local")
BY_INDEX = "index"  # in place of a digest: the index has the hash of each block of the file

MAX_BYTES = 16 << 20
MAX_ENTRIES = 65536  # of any list: processes, files
MAX_TEXT = 4096
MAX_NUMBER = 1 << 62

FLAGS = ("tcp-established", "file-locks", "ext-unix-sk", "shell-job")


class Process:
    """A process of the container at the time of the dump."""

    __slots__ = ("comm", "gpu", "pid", "stopped")

    def __init__(self, *, pid: int, comm: str, gpu: bool, stopped: bool) -> None:
        self.pid = pid  # as the container's first process sees it
        self.comm = comm
        self.gpu = gpu  # the driver holds a checkpoint of it
        self.stopped = stopped  # by a signal, so nobody may continue it after the restore


class File:
    """A file of the snapshot."""

    __slots__ = ("digest", "name", "size")

    def __init__(self, *, name: str, size: int, digest: str) -> None:
        self.name = name  # flat
        self.size = size  # bytes
        self.digest = digest  # "blake3:<hex>", or BY_INDEX


class Manifest:
    """The fields of diapause.json; `raw` is the document as it was read or will be written."""

    __slots__ = ("raw",)

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    @property
    def engine(self) -> str:
        """How the container was managed: intercept or driver."""
        return str(self.raw["engine"])

    @property
    def software(self) -> bool:
        return bool(self.raw["software"])

    @property
    def driver(self) -> Mapping[str, Any] | None:
        """{version, digest, size} of the libcuda, None when no process used the GPU."""
        driver: Mapping[str, Any] | None = self.raw["driver"]
        return driver

    @property
    def library(self) -> str:
        """The digest of our library in the container, "" if it had none."""
        return str((self.raw["library"] or {}).get("digest", ""))

    @property
    def targets(self) -> list[str]:
        return list(self.raw["targets"])

    @property
    def flags(self) -> list[str]:
        """What CRIU needs again, a part of FLAGS, in its order."""
        return [flag for flag in FLAGS if flag in self.raw["flags"]]

    @property
    def processes(self) -> list[Process]:
        names = ("pid", "comm", "gpu", "stopped")
        return [Process(**{name: entry[name] for name in names}) for entry in self.raw["processes"]]

    @property
    def files(self) -> list[File]:
        names = ("name", "size", "digest")
        return [File(**{name: entry[name] for name in names}) for entry in self.raw["files"]]

    @property
    def gpu_data(self) -> Mapping[str, Any] | None:
        """Where the GPU data is and how much; the keys are those of gpu_data_entry()."""
        found: Mapping[str, Any] | None = self.raw.get("gpu_data")
        return found

    @property
    def phases(self) -> list[Mapping[str, Any]]:
        """[{name, ms, bytes}], with start_ms where it is known."""
        return list(self.raw["phases"])

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def encode(self) -> bytes:
        """The document with its root digest, ready to be written."""
        body = {key: value for key, value in self.raw.items() if key != "digest"}
        self.raw = {**body, "digest": _root_digest(body)}
        return (json.dumps(self.raw) + "\n").encode()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(entry) for entry in value]
    return value


def _root_digest(body: Mapping[str, Any]) -> str:
    """One digest over everything: the body names the digest of each file. Keys in code point order."""
    from diapause.runtime.store import digest

    return digest.of_bytes(json.dumps(_sorted(body)).encode())


def decode(data: bytes, where: str) -> Manifest:
    """Read a manifest; `where` names it in errors.

    Raises InvalidArgument with its own code for each reason: snapshot-malformed, snapshot-version,
    snapshot-feature, snapshot-digest.
    """
    try:
        raw = json.loads(data.decode())
    except (ValueError, RecursionError) as e:
        raise _malformed(where, f"no JSON: {e}") from None
    if not isinstance(raw, dict) or raw.get("magic") != MAGIC:
        raise _malformed(where, f"no document with magic {MAGIC!r}")
    _check_version(raw, where)
    stated = raw.get("digest")
    body = {key: value for key, value in raw.items() if key != "digest"}
    try:
        real = _root_digest(body)
    except (TypeError, ValueError, RecursionError) as e:
        raise _malformed(where, str(e)) from None
    if stated != real:
        raise InvalidArgument(
            "snapshot-digest", where, f"its digest is {real}, it says {str(stated)[:80]}",
            "the snapshot was changed after it was taken: take it anew or copy it again",
        )  # fmt: skip
    _check_fields(raw, where)
    return Manifest(raw)


def _malformed(where: str, why: str) -> InvalidArgument:
    return InvalidArgument(
        "snapshot-malformed", where, why[:300], "the snapshot is damaged: take it anew or copy it again"
    )


def _check_version(raw: Mapping[str, Any], where: str) -> None:
    """Before anything else, because a newer format may look different everywhere."""
    version = raw.get("version")
    if not isinstance(version, int) or not _is_number(version) or version < 1:
        raise _malformed(where, "no version")
    if version > VERSION:
        raise InvalidArgument(
            "snapshot-version", where, f"format version {version}, this one reads up to {VERSION}",
            "upgrade Diapause on this host",
        )  # fmt: skip
    features = raw.get("features")
    if not isinstance(features, dict) or not _are_texts(features.get("required")):
        raise _malformed(where, "no features")
    if unknown := sorted(set(features["required"]) - FEATURES):
        raise InvalidArgument(
            "snapshot-feature", where, f"it needs {', '.join(unknown)[:200]}, which is not known here",
            "upgrade Diapause on this host",
        )  # fmt: skip


def _check_fields(raw: Mapping[str, Any], where: str) -> None:
    def need(holds: bool, what: str) -> None:
        if not holds:
            raise _malformed(where, f"bad {what}")

    for name in ("id", "created", "evacuated", "spec_digest"):
        need(_is_text(raw.get(name)), name)
    need(raw.get("engine") in ("intercept", "driver"), "engine")
    need(isinstance(raw.get("software"), bool), "software")
    need(_are_texts(raw.get("targets")), "targets")
    need(_are_texts(raw.get("flags")) and set(raw["flags"]) <= set(FLAGS), "flags")
    tools = raw.get("tools")
    need(isinstance(tools, dict) and _are_texts(list(tools.values())), "tools")
    need("driver" in raw and "library" in raw, "driver or library")  # null, where there is none
    need(_has(raw.get("driver"), {"version": _is_text, "digest": _is_text, "size": _is_number}, none=True),
         "driver")  # fmt: skip
    need(_has(raw.get("library"), {"digest": _is_text}, none=True), "library")
    process = {"pid": _is_number, "comm": _is_text, "gpu": _is_bool, "stopped": _is_bool}
    need(_all_have(raw.get("processes"), process), "processes")
    need(_all_have(raw.get("phases"), {"name": _is_text, "ms": _is_time, "bytes": _is_number}), "phases")
    need(_all_have(raw.get("files"), {"name": _is_text, "size": _is_number, "digest": _is_text}), "files")
    names = [entry["name"] for entry in raw["files"]]
    need(all(layout.is_flat(name) and layout.is_part(name) for name in names), "name of a file")
    need(len(set(names)) == len(names), "files: a name comes twice")
    pids = [entry["pid"] for entry in raw["processes"]]
    need(len(set(pids)) == len(pids), "processes: a pid comes twice")
    need(raw["driver"] is not None or not any(entry["gpu"] for entry in raw["processes"]), "driver")
    for phase in raw["phases"]:
        need(_is_time(phase.get("start_ms", 0)), "phases")
    if why := _fault_of_gpu_data(raw):
        raise _malformed(where, f"bad gpu_data: {why}")


def _fault_of_gpu_data(raw: Mapping[str, Any]) -> str:
    """What contradicts itself in what is said of the GPU data, "" for nothing."""
    entry = raw.get("gpu_data")
    if (entry is not None) != (GPU_DATA in raw["features"]["required"]):
        return "the feature and the entry do not agree"
    digests = {file["name"]: file["digest"] for file in raw["files"]}
    data = {name for name in digests if layout.gpu_number(name) is not None}
    if {name for name, digest in digests.items() if digest == BY_INDEX} != data:
        return f"the digest {BY_INDEX!r} belongs to data files, and to each of them"
    if entry is None:
        return "files without an entry" if data or layout.GPU_INDEX in digests else ""
    texts, numbers = ("placement", "name", "host", "index"), ("bytes", "zero", "allocations")
    if not _has(entry, {**dict.fromkeys(texts, _is_text), **dict.fromkeys(numbers, _is_number)}):
        return "a field is missing or of another type"
    if entry["placement"] not in PLACEMENTS:
        return f"placement {entry['placement'][:80]!r}"
    if entry["placement"] == "local":
        if not layout.is_flat(entry["name"]) or data:
            return "no name of a local snapshot, or data files beside it"
    elif entry["name"]:
        return "a local name for what is embedded"
    if entry["zero"] > entry["bytes"]:
        return f"{entry['zero']} of {entry['bytes']} bytes are zeros"
    return "" if digests.get(layout.GPU_INDEX) == entry["index"] else "the index has another digest"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


def _is_time(value: object) -> bool:
    return _is_number(value) or (isinstance(value, float) and 0 <= value <= MAX_NUMBER)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MAX_ENTRIES and all(_is_text(entry) for entry in value)


def _has(value: object, fields: Mapping[str, Any], *, none: bool = False) -> bool:
    if value is None:
        return none
    return isinstance(value, dict) and all(check(value.get(name)) for name, check in fields.items())


def _all_have(value: object, fields: Mapping[str, Any]) -> bool:
    return isinstance(value, list) and len(value) <= MAX_ENTRIES and all(_has(e, fields) for e in value)


def process_entries(processes: Iterable[Process]) -> list[dict[str, Any]]:
    return [{"pid": p.pid, "comm": p.comm[:MAX_TEXT], "gpu": p.gpu, "stopped": p.stopped} for p in processes]


def gpu_data_entry(
    *, placement: str, name: str, host: str, bytes: int, zero: int, allocations: int, index: str
) -> dict[str, Any]:
    """The value of `gpu_data`. With it, GPU_DATA stands in the required features.

    `name` is that of the local snapshot and `host` the machine that has it, for people; both "" for what is
    embedded. `bytes` of device memory, `zero` of them in blocks of zeros; `index` is the digest of the index.
    """
    return {
        "placement": placement, "name": name, "host": host, "bytes": bytes, "zero": zero,
        "allocations": allocations, "index": index,
    }  # fmt: skip


def file_entries(files: Iterable[File]) -> list[dict[str, Any]]:
    return [{"name": f.name, "size": f.size, "digest": f.digest} for f in files]
