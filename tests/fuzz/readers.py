"""What a fuzzer does with the readers of snapshots: each takes bytes, and may only refuse in our words.

With coverage as the guide, for as long as one likes; atheris is no dependency of anything here:

    pip install atheris
    python tests/fuzz/readers.py gpu_index corpus/ -max_total_time=600

tests/unit/store/test_fuzz.py runs the same targets for a moment with random changes of sound files.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from diapause.runtime.errors import InvalidArgument
from diapause.runtime.store import entry, gpu_index, manifest

WHERE = "snapshot fuzz"


def gpu_index_reader(data: bytes) -> None:
    try:
        index = gpu_index.decode(data, WHERE)
    except InvalidArgument as error:
        expect(error, "gpu-index-")
        return
    assert gpu_index.encode(index) == data
    assert 0 <= index.zero <= index.bytes
    assert sum(len(index.of(allocation)) for allocation in index.allocations) == len(index.blocks)
    assert len(index.slots()) == index.files


def expect(error: InvalidArgument, code: str) -> None:
    assert error.code.startswith(code), error


def manifest_reader(data: bytes) -> None:
    try:
        document = manifest.decode(data, WHERE)
    except InvalidArgument as error:
        expect(error, "snapshot-")
        return
    used(document)


def sealed_manifest_reader(data: bytes) -> None:
    """The same with the right digest, so that the fields are looked at."""
    try:
        raw = json.loads(data)
        raw.pop("digest", None)
        sealed = manifest.Manifest(raw).encode()
    except (AttributeError, TypeError, ValueError, RecursionError):
        return
    manifest_reader(sealed)


def used(document: manifest.Manifest) -> None:
    """Everything that reads fields of a manifest that was accepted."""
    assert document.engine in ("intercept", "driver")
    assert document.size >= 0
    assert len(document.processes) == len(document.raw["processes"])
    assert set(document.flags) <= set(manifest.FLAGS)
    assert all("/" not in file.name for file in document.files)
    if document.gpu_data is not None:
        assert document.gpu_data["zero"] <= document.gpu_data["bytes"]
    for phase in document.phases:
        assert float(phase["ms"]) + float(phase.get("start_ms", 0)) >= 0
    _ = (document.driver, document.library, document.targets, document.software)
    document.encode()


def entry_reader(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, entry.NAME).write_bytes(data)
        try:
            entry.read(directory)
        except InvalidArgument as error:
            expect(error, "store-entry-malformed")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "gpu_index": gpu_index_reader,
    "manifest": manifest_reader,
    "sealed_manifest": sealed_manifest_reader,
    "entry": entry_reader,
}


def main() -> None:
    import atheris  # type: ignore[import-not-found]

    target = TARGETS[sys.argv.pop(1)]
    atheris.instrument_all()
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
