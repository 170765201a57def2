"""Python clients of the driver and of NVML on the software GPU, as their users have them from PyPI."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from integration.harness import softgpu

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "integration/clients"


def client(name: str, *args: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, str(CLIENTS / name), *args],
        check=False,
        env=softgpu.environment(**env),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_bindings = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed"
)


@needs_bindings
@pytest.mark.parametrize("per_thread", ["0", "1"], ids=["legacy-stream", "per-thread-stream"])
def test_cuda_bindings_work_on_the_software_gpu(per_thread: str) -> None:
    ptx = str(ROOT / "native/demo/kernels.ptx")

    said = client("cuda_bindings.py", ptx, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=per_thread)

    assert said.split() == ["ok", "device", "ok", "memory", "ok", "streams", "ok", "modules", "ok", "vmm"]


def test_nvml_describes_the_software_gpu_as_software() -> None:
    said = json.loads(client("nvml.py", DIAPAUSE_SOFTGPU_MEMORY="3G"))

    assert said["name"] == "Diapause software GPU"
    assert said["driver"].startswith("softgpu-")
    assert said["uuid"].startswith("GPU-")
    assert (said["count"], said["processes"], said["total_bytes"]) == (1, 0, 3 << 30)
    assert said["second"] == "Invalid Argument"
