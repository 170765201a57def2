import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.container import Container
from diapause.runtime.engine import api
from diapause.runtime.oci import copies
from diapause.runtime.oci.call import Call
from diapause.runtime.oci.main import main
from diapause.runtime.store import manifest
from diapause.runtime.store.manifest import Manifest

TARGETS = [f"/usr/lib/x86_64-linux-gnu/{name}" for name in ("libcuda.so.1", "libcuda.so.580.159.03")]


class BecameRunc(BaseException):
    """The end of this process."""


@pytest.fixture(autouse=True)
def become(monkeypatch: pytest.MonkeyPatch) -> None:
    def become_runc(call: Call) -> None:
        raise BecameRunc(call.runc, call.command.argv)

    monkeypatch.setattr(Call, "become_runc", become_runc)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def record(request: Any) -> int:
        seen.append(request)
        return 0

    monkeypatch.setattr(api, "restore", record)
    return seen


@pytest.fixture(autouse=True)
def lenient_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest's own reader has its own tests, and more fields than count here."""
    monkeypatch.setattr(manifest, "decode", lambda data, _: Manifest(json.loads(data)))


def snapshot(host: Path, *, library: str = "", targets: list[str] = TARGETS) -> Path:
    image = host / "image"
    image.mkdir()
    raw = {"targets": targets, "library": {"digest": library} if library else None}
    (image / "diapause.json").write_text(json.dumps(raw), encoding="utf-8")
    return image


def restore(bundle: Any, image: Path, *words: str) -> int:
    argv = [
        "--root",
        "/no/such",
        "restore",
        "--image-path",
        str(image),
        "--bundle",
        str(bundle.path),
        *words,
        "c1",
    ]
    return main("/usr/bin/runc", argv, front="/opt/bin/diapause-runc")


def test_a_container_without_a_gpu_goes_to_runc(bundle: Any, host: Path) -> None:
    before = bundle.config.read_bytes()
    with pytest.raises(BecameRunc):
        restore(bundle, host / "plain-image")
    assert bundle.config.read_bytes() == before


def test_the_new_bundle_gets_the_library_that_the_snapshot_names(
    gpu_bundle: Any, host: Path, native: Path, requests: list[Any]
) -> None:
    _, old = copies.current()
    (native / "lib/libdiapause-cuda.so").write_bytes(b"\x7fELF\x02 a newer version")

    assert (
        restore(gpu_bundle, snapshot(host, library=old), "--detach", "--pid-file", "/pid", "-no-subreaper")
        == 0
    )

    (request,) = requests
    sources = {m["source"] for m in gpu_bundle.spec["mounts"] if m["destination"] in TARGETS}
    assert sources == {copies.path_of(old.removeprefix("sha256:"))}
    assert (request.bundle, request.detach, request.pid_file) == (str(gpu_bundle.path), True, "/pid")
    assert request.state["library"]["digest"] == old
    assert request.state == Container("/no/such", "c1").load_state()


@pytest.mark.parametrize("kind", ["right", "another", "none"])
def test_the_library_comes_with_the_snapshot_where_this_host_lacks_it(
    gpu_bundle: Any, host: Path, requests: list[Any], capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    data = Path("/proc/self/exe").resolve().read_bytes()[:4096]
    data = data[:16] + b"\x03\x00" + data[18:]  # ET_DYN
    name = f"sha256:{hashlib.sha256(data).hexdigest()}"
    image = snapshot(host, library=name)
    if kind != "none":
        (image / "diapause-libcuda.so.1").write_bytes(data + (b"" if kind == "right" else b"!"))

    assert restore(gpu_bundle, image) == (0 if kind == "right" else 1)

    if kind == "right":
        copy = Path(requests[0].state["library"]["path"])
        assert copy == Path(copies.path_of(name.removeprefix("sha256:")))
        assert copy.read_bytes() == data
        assert copy.stat().st_mode & 0o777 == 0o555
    else:
        assert "[library-not-here]" in capfd.readouterr().err
        assert list((host / "state" / "lib").iterdir()) == []


def test_a_snapshot_without_the_library_is_restored_without_it(
    gpu_bundle: Any, host: Path, requests: list[Any]
) -> None:
    assert restore(gpu_bundle, snapshot(host)) == 0
    assert requests[0].state["engine"] == "driver"
    assert not any(m["destination"].startswith("/.diapause") for m in gpu_bundle.spec["mounts"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"library": "sha256:" + "0" * 64}, "[library-not-here]"),
        ({"library": "sha256:../../../etc"}, "[library-not-here]"),
        ({"targets": ["/usr/lib64/libcuda.so.1"]}, "[libcuda-target-missing]"),
        ({"targets": ["/etc/passwd"]}, "[snapshot-malformed]"),
        ({"targets": ["/usr/../etc/libcuda.so.1"]}, "[snapshot-malformed]"),
    ],
)
def test_a_snapshot_that_asks_for_what_is_not_here_touches_nothing(
    gpu_bundle: Any, host: Path, requests: list[Any], change: dict[str, Any], message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    before = gpu_bundle.config.read_bytes()

    assert restore(gpu_bundle, snapshot(host, **change)) == 1

    assert message in capfd.readouterr().err
    assert gpu_bundle.config.read_bytes() == before
    assert not (host / "run").exists()
    assert requests == []


@pytest.mark.parametrize("annotations", [{}, {"diapause.dev/gpu": "off"}, {"diapause.dev/gpus": "all"}])
def test_a_snapshot_brings_no_gpu_into_a_container_that_asks_for_none(
    bundle: Any, host: Path, requests: list[Any], capfd: pytest.CaptureFixture[str], annotations: Any
) -> None:
    """containerd GHSA-33vj-92qq-66hc: devices for whoever supplies a checkpoint image."""
    node = {"kind": "nvidia.com/gpu", "devices": [{"name": "all"}], "containerEdits": {
        "mounts": [{"hostPath": "/h/libcuda.so.1", "containerPath": TARGETS[0]}]}}  # fmt: skip
    (host / "cdi" / "gpu.json").write_text(json.dumps(node), encoding="utf-8")
    bundle.config.write_text(json.dumps({**bundle.spec, "annotations": annotations}), encoding="utf-8")
    before = bundle.config.read_bytes()

    assert restore(bundle, snapshot(host)) == 1

    assert "[gpu-not-requested]" in capfd.readouterr().err
    assert bundle.config.read_bytes() == before
    assert requests == []


def test_where_nothing_is_managed_by_default_a_snapshot_still_comes_back(
    gpu_bundle: Any, host: Path, requests: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIAPAUSE_RUNTIME_DEFAULT_ENGINE", "off")
    assert restore(gpu_bundle, snapshot(host)) == 0
    assert requests[0].state["engine"] == "driver"


def test_a_manifest_that_is_a_link_is_not_followed(
    gpu_bundle: Any, host: Path, requests: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    image = snapshot(host)
    (image / "diapause.json").rename(host / "elsewhere")
    (image / "diapause.json").symlink_to(host / "elsewhere")

    assert restore(gpu_bundle, image) == 1
    assert "diapause.json" in capfd.readouterr().err
