"""The edit of a managed container: one function from specification to specification, the same for create,
run and restore; afterwards runc and CRIU see everything as declared external mounts.
"""

from __future__ import annotations

from diapause.runtime.container import run_dir
from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import copies, driver, expected, gpu, maker, report, stale, vouched
from diapause.runtime.oci.annotations import placement
from diapause.runtime.oci.edits import cdi, compat, criu, hooks, library, mounts, nvidia

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from diapause.runtime.container import Container
    from diapause.runtime.oci.call import Call
    from diapause.runtime.oci.spec import Spec


def edit(
    spec: Spec, call: Call, container: Container, *, engine: str, wanted_library: str = ""
) -> dict[str, Any]:
    """Edit `spec` in memory and return the container's state. `wanted_library` is a digest that a snapshot
    names; "" takes the installed library. Raises DiapauseError, with nothing done."""
    cdi.normalise(spec, call.config.cdi_spec_dirs, call.runc)
    cdi.keep_nvidia_out(spec, call.runc)
    nvidia.replace_hooks(spec)
    real = library.real_libcuda(spec)
    if not real:
        why = "the specification mounts no libcuda that a 64-bit process could load"
        raise FailedPrecondition("libcuda-32-bit", "gpu request", why, "ask for the GPU by CDI")
    vouched.check(real, call.config)
    compat.refuse_directories(spec)
    identity = driver.identity(real)
    copy = None
    if engine == "intercept" and not wanted_library:
        engine = _engine_of_image(spec, call, container, identity["version"])
    if engine == "intercept":
        path, digest = (copies.find(wanted_library), wanted_library) if wanted_library else copies.current()
        library.insert(spec, path)
        compat.cover(spec, path, identity["version"])
        copy = {"path": path, "digest": digest}
    mounts.resolve_sources(spec)
    mounts.split_recursive(spec, mounts.host_mount_points())
    hooks.install(spec, call.hook, container.key, maker.mark())
    base = criu.point(spec, container.directory)
    return {
        "version": 1,
        "root": container.root,
        "id": container.id,
        "bundle": spec.bundle,
        "engine": engine,
        "explicit": gpu.asked_by_name(spec) == engine,  # by name, so that nothing else will do
        "software": driver.is_software(identity),
        "driver": identity,
        "library": copy,
        "targets": [mount["destination"] for mount in gpu.cuda_mounts(spec)],
        "devices": gpu.device_nodes(spec),
        "criu_config": base,
        "placement": placement(spec.annotations),
        "pid": None,  # the last two: the hook fills them in
        "start_time": None,
    }


def _engine_of_image(spec: Spec, call: Call, container: Container, version: str) -> str:
    """`driver` where the program will load a libcuda of the image that is newer than the node's."""
    newer = [path for path, used in compat.find(spec).items() if used and compat.is_newer(path, version)]
    if not newer:
        return "intercept"
    why = f"{newer[0]} in the image is newer than the node's driver {version} and would be loaded without us"
    if gpu.asked_by_name(spec) == "intercept":
        todo = "take its directory out of LD_LIBRARY_PATH, or ask for the engine driver"
        raise FailedPrecondition("libcuda-newer-in-image", f"container {container.id}", why, todo)
    report.warning(call.command, f"container {container.id}: engine driver: {why}")
    return "driver"


def store(spec: Spec, call: Call, container: Container, state: dict[str, Any]) -> None:
    """Write state and specification, or neither; becomes runc for an id that somebody else has taken."""
    try:
        container.make_directory()
        with container.lock():
            maker.claim(container)
            if call.is_taken:
                call.become_runc()
            _write(spec, container, state)
    except OSError as e:
        why = f"{e.filename}: {(e.strerror or str(e)).lower()}"
        todo = f"see that {run_dir()} and {spec.bundle} can be written and have room"
        raise FailedPrecondition("state-not-written", f"container {container.id}", why, todo) from e


def _write(spec: Spec, container: Container, state: dict[str, Any]) -> None:
    try:
        expected.write(container.directory, state)
        container.store_state(state)
        stale.link(container.directory, container.root, container.id)
        spec.store()
    except BaseException:
        container.forget()
        raise
