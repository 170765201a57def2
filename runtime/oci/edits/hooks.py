"""Our hooks: register and verify at create and at restore, clean up at delete.

createRuntime and poststop only. runc before 1.3 starts a hook without an environment of its own with the
container's, or the engine's, so the entry carries one; the image has no say in what runs.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from diapause.runtime.oci.spec import Spec

NAME = "diapause-hook"
STAGES = {"createRuntime": "register", "poststop": "cleanup"}
TIMEOUT = 60  # seconds: the first look at a new driver reads the whole libcuda
PASSED_ON = ("DIAPAUSE_RUN_DIR", "DIAPAUSE_STATE_DIR", "DIAPAUSE_CONFIG", "DIAPAUSE_NATIVE_DIR")


def install(spec: Spec, program: str, key: str, maker: str, environ: Mapping[str, str] = os.environ) -> None:
    """`maker` marks this container among those that have or had its key."""
    for stage, verb in STAGES.items():
        hooks = spec.hooks(stage)
        hooks[:] = [hook for hook in hooks if os.path.basename(hook["path"]) != NAME]
        words = [NAME, verb, *(["--maker", maker] if verb == "cleanup" else []), "--key", key]
        hooks.append(_entry(program, words, environ))


def _entry(program: str, words: list[str], environ: Mapping[str, str]) -> dict[str, Any]:
    env = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"]
    env += [f"{name}={environ[name]}" for name in PASSED_ON if environ.get(name)]
    return {"path": program, "args": words, "env": env, "timeout": TIMEOUT}
