"""The software GPU's libraries, for clients that run on the host."""

import os
import sysconfig
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]


@cache
def folder() -> Path:
    """Where libcuda.so.1 and libnvidia-ml.so.1 lie: DIAPAUSE_SOFTGPU, the package, or this tree's build."""
    candidates = [
        os.environ.get("DIAPAUSE_SOFTGPU"),
        f"{sysconfig.get_path('purelib')}/diapause/native/softgpu",
        _ROOT / "build/editable/diapause/native/softgpu",
    ]
    for candidate in candidates:
        if candidate and (Path(candidate) / "libcuda.so.1").exists():
            return Path(candidate)
    raise FileNotFoundError(f"no libcuda.so.1 in {[str(c) for c in candidates if c]}; build the C parts")


def environment(**more: str) -> dict[str, str]:
    """This process's environment with the software GPU first on the loader's path."""
    return {**os.environ, "LD_LIBRARY_PATH": str(folder()), **more}
