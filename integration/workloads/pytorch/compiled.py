# SPDX-License-Identifier: Apache-2.0
"""The eager training by torch.compile, which makes its kernels here: that needs a C compiler and Python.h."""

import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import eager
from common import Skip


def needs() -> None:
    """Raises Skip if Triton could not compile."""
    if not any(shutil.which(name) for name in (os.environ.get("CC", "cc"), "gcc", "clang")):
        raise Skip("no C compiler, which Triton needs")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        raise Skip(f"no Python.h in {sysconfig.get_path('include')}, which Triton needs")
    if importlib.util.find_spec("triton") is None:
        raise Skip("no Triton")


class Program(eager.Program):
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        needs()
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        super().__init__(torch, device, options)
        self.forward = torch.compile(self.model)
        for number in range(2):  # compiles forward and backward: "ready" comes when it is done
            self.step(number)
