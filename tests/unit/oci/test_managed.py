"""The whole edit of a managed container."""

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime.container import Container
from diapause.runtime.errors import DiapauseError
from diapause.runtime.oci import args, copies, managed
from diapause.runtime.oci.call import Call
from diapause.runtime.oci.spec import Spec

LIB = "/usr/lib/x86_64-linux-gnu"


def edit(bundle: Any, *, engine: str = "intercept", container_id: str = "c1") -> tuple[Spec, dict[str, Any]]:
    command = args.parse(["--root", "/r", "create", "--bundle", str(bundle.path), container_id])
    call = Call(command, runc="/usr/bin/runc", front="/opt/diapause/bin/diapause-runc")
    spec = Spec.load(str(bundle.path))
    return spec, managed.edit(spec, call, call.container, engine=engine)


def test_the_state_says_what_the_container_was_given(gpu_bundle: Any, libcuda: Path, native: Path) -> None:
    _, state = edit(gpu_bundle)

    real = libcuda.resolve()
    assert state == {
        "version": 1,
        "root": "/r",
        "id": "c1",
        "bundle": str(gpu_bundle.path),
        "engine": "intercept",
        "explicit": False,
        "software": False,
        "driver": {
            "version": "580.159.03",
            "libcuda": {"path": str(real), "digest": state["driver"]["libcuda"]["digest"], "size": 18},
        },
        "library": {
            "path": copies.path_of(state["library"]["digest"][7:]),
            "digest": state["library"]["digest"],
        },
        "targets": [f"{LIB}/libcuda.so.580.159.03", f"{LIB}/libcuda.so.1"],
        "devices": [{"path": "/dev/nvidia0", "major": 1, "minor": 3}],
        "criu_config": "/etc/criu/runc.conf",
        "placement": "",
        "pid": None,
        "start_time": None,
    }
    copied = Path(state["library"]["path"])
    assert copied.read_bytes() == (native / "lib/libdiapause-cuda.so").read_bytes()
    assert copied.stat().st_mode & 0o777 == 0o555


def test_editing_twice_gives_the_same(gpu_bundle: Any) -> None:
    spec, first = edit(gpu_bundle)
    spec.store()
    once = gpu_bundle.spec

    spec, second = edit(gpu_bundle)
    spec.store()

    assert (gpu_bundle.spec, second) == (once, first)


def test_an_edited_bundle_can_serve_another_container(gpu_bundle: Any) -> None:
    edit(gpu_bundle)[0].store()
    spec, _ = edit(gpu_bundle, container_id="c2")

    key = Container("/r", "c2").key
    assert [hook["args"][-1] for stage in spec.hook_stages for hook in spec.hooks(stage)] == [key, key]
    assert key in spec.annotations["org.criu.config"]


def test_the_driver_engine_leaves_the_libraries_as_they_are(gpu_bundle: Any) -> None:
    before = gpu_bundle.spec
    spec, state = edit(gpu_bundle, engine="driver")

    assert (state["engine"], state["library"]) == ("driver", None)
    assert len(spec.mounts) == len(before["mounts"])
    assert spec.mount_at("/.diapause/libcuda.so.1") is None


def test_only_what_we_know_changes(gpu_bundle: Any) -> None:
    before = gpu_bundle.spec
    spec, _ = edit(gpu_bundle)

    after = copy.deepcopy(spec.data)
    assert set(after) - set(before) == {"hooks", "annotations"}
    for name in ("hooks", "annotations", "mounts"):
        after.pop(name)
        before.pop(name, None)
    assert after == before


def test_a_libcuda_that_is_not_there_is_named(gpu_bundle: Any, libcuda: Path) -> None:
    libcuda.resolve().unlink()
    with pytest.raises(DiapauseError, match=r"libcuda\.so\.580\.159\.03 does not exist on this host"):
        edit(gpu_bundle)


def test_the_software_gpu_is_recorded_as_such(gpu_bundle: Any, native: Path) -> None:
    for mount in gpu_bundle.spec["mounts"]:
        if "libcuda" in mount["destination"]:
            Path(mount["source"]).unlink()
            Path(mount["source"]).write_bytes((native / "softgpu/libcuda.so.1").read_bytes())
    data = gpu_bundle.spec
    data["mounts"] = [m for m in data["mounts"] if not m["destination"].endswith("159.03")]
    gpu_bundle.config.write_text(json.dumps(data), encoding="utf-8")

    _, state = edit(gpu_bundle)

    assert (state["software"], state["driver"]["version"]) == (True, "softgpu-1")


def schema_directory() -> Path:
    """The runtime-spec's JSON schemas in Go's module cache; they come with any build of runc."""
    cache = os.environ.get("GOMODCACHE") or f"{os.environ.get('GOPATH') or Path.home() / 'go'}/pkg/mod"
    found = sorted(Path(cache).glob("github.com/opencontainers/runtime-spec@*/schema"))
    if not found:
        pytest.skip(f"no runtime-spec module in {cache} (it comes with a build of runc)")
    return found[-1]


@pytest.mark.parametrize("engine", ["intercept", "driver"])
def test_the_result_is_valid_by_the_runtime_specs_schema(gpu_bundle: Any, engine: str) -> None:
    directory = schema_directory()
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    schemas = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in directory.glob("*.json")}
    resources = []
    for name, schema in schemas.items():
        resource = referencing.Resource.from_contents(schema, referencing.jsonschema.DRAFT4)
        resources += [(name, resource), (schema.get("id", name), resource)]
    registry = referencing.Registry().with_resources(resources)
    schema = schemas["config-schema.json"]
    validator = jsonschema.Draft4Validator(schema, registry=registry)

    spec, _ = edit(gpu_bundle, engine=engine)

    assert [error.message for error in validator.iter_errors(spec.data)] == []
    spec.hooks("poststop")[0]["timeout"] = 0
    assert list(validator.iter_errors(spec.data))  # the schema would have caught a bad entry


def test_the_real_programs_are_found_from_a_call() -> None:
    call = Call(args.parse(["state", "c1"]), runc="/usr/bin/runc", front="/opt/diapause/bin/diapause-runc")
    assert call.hook == "/opt/diapause/bin/diapause-hook"


def image_has(bundle: Any, name: str) -> None:
    path = bundle.path / "rootfs" / name.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x7fELF\x02")


def test_an_older_libcuda_of_the_image_is_one_more_target(gpu_bundle: Any) -> None:
    image_has(gpu_bundle, "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
    spec, state = edit(gpu_bundle)

    mount = spec.mount_at("/usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
    assert mount is not None
    assert mount["source"] == state["library"]["path"]
    assert mount["destination"] in state["targets"]


def test_a_newer_one_that_would_be_loaded_leaves_the_driver_engine(gpu_bundle: Any) -> None:
    image_has(gpu_bundle, "/compat/libcuda.so.590.1")
    data = gpu_bundle.spec
    data["process"]["env"].append("LD_LIBRARY_PATH=/compat")
    gpu_bundle.config.write_text(json.dumps(data))

    _, state = edit(gpu_bundle)
    assert (state["engine"], state["library"]) == ("driver", None)

    gpu_bundle.config.write_text(json.dumps({**data, "annotations": {"diapause.dev/gpu": "intercept"}}))
    with pytest.raises(DiapauseError, match=r"newer than .* 580\.159\.03.*\[libcuda-newer-in-image\]"):
        edit(gpu_bundle)


def test_a_newer_one_that_nothing_loads_changes_nothing(gpu_bundle: Any) -> None:
    image_has(gpu_bundle, "/usr/local/cuda-13.1/compat/libcuda.so.590.1")
    spec, state = edit(gpu_bundle)
    assert state["engine"] == "intercept"
    assert spec.mount_at("/usr/local/cuda-13.1/compat/libcuda.so.590.1") is None


def test_a_directory_where_the_driver_belongs_is_refused(gpu_bundle: Any) -> None:
    image_has(gpu_bundle, f"{LIB}/libcuda.so.1/x")
    with pytest.raises(DiapauseError, match=r"is a directory.*\[libcuda-target-directory\]"):
        edit(gpu_bundle)
