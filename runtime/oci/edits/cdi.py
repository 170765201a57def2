"""GPU requests that are not CDI edits yet become CDI edits.

What NVIDIA's hook mounts, runc and CRIU know nothing of: such a container cannot be restored, and the hook's
libcuda would cover ours. So the hook is taken out and the node's CDI specification applied instead. The
same happens for a container that asks by annotation and has no libcuda.
"""

from __future__ import annotations

import os

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci import gpu
from diapause.runtime.oci.annotations import GPUS
from diapause.runtime.oci.cdi import specs
from diapause.runtime.oci.cdi.apply import apply, set_env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from diapause.runtime.oci.spec import Spec

NVIDIA_DEVICE = "/dev/nvidiactl"


def normalise(spec: Spec, directories: Sequence[str], runc: str) -> None:
    legacy = gpu.legacy_hooks(spec)
    if gpu.cuda_mounts(spec) and not legacy:
        return
    if not gpu.cuda_mounts(spec):
        kind, names = _by_hook(spec, directories) if legacy else _by_name(spec, directories, runc)
        for edits in specs.edits(kind, names, directories):
            apply(spec, edits)
        if not gpu.cuda_mounts(spec):
            why = f"the CDI specification of {kind} mounts no libcuda"
            raise FailedPrecondition("cdi-without-libcuda", "gpu request", why, specs.GENERATE)
    for stage, hook in legacy:
        spec.hooks(stage).remove(hook)


def keep_nvidia_out(spec: Spec, runc: str) -> None:
    """The container has its GPU: NVIDIA's runtime below ours must not put one in a second time, behind us."""
    if gpu.is_nvidias(runc):
        set_env(spec.env, f"{gpu.VISIBLE}=void")


def _by_hook(spec: Spec, directories: Sequence[str]) -> tuple[str, list[str]]:
    """The hook names the node's GPUs and no kind: they are the software GPU where the node has that alone."""
    kind = _kind_of_node(directories)
    for _, hook in gpu.legacy_hooks(spec):
        words = [str(word) for word in hook.get("args") or []]
        if chosen := [word.removeprefix("--device=") for word in words if word.startswith("--device=")]:
            return kind, _split(",".join(chosen))
    return kind, _split(gpu.visible_devices(spec, "all"))


def _by_name(spec: Spec, directories: Sequence[str], runc: str) -> tuple[str, list[str]]:
    names = _split(spec.annotations.get(GPUS) or gpu.asked_by_variable(spec, runc))
    kinds = {name.rpartition("=")[0] for name in names if "=" in name}
    if len(kinds) > 1:
        why = f"devices of {' and '.join(sorted(kinds))} in one container"
        raise FailedPrecondition("gpus-mixed", f"annotation {GPUS}", why, "ask for one kind")
    kind = kinds.pop() if kinds else _kind_of_node(directories)
    return kind, [name.rpartition("=")[2] for name in names]


def _kind_of_node(directories: Sequence[str]) -> str:
    """NVIDIA's where the node has it; the software GPU is never chosen silently beside a real one."""
    kinds = specs.kinds(directories)
    if specs.SOFTWARE in kinds and specs.NVIDIA not in kinds and os.path.exists(NVIDIA_DEVICE):
        todo = f"{specs.GENERATE}, or ask for the software GPU with {GPUS}={specs.SOFTWARE}=0"
        why = "this host has an NVIDIA GPU and a CDI specification for the software GPU only"
        raise FailedPrecondition("cdi-software-only", "gpu request", why, todo)
    return specs.SOFTWARE if kinds == {specs.SOFTWARE} else specs.NVIDIA


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()] or ["all"]
