"""The controller of the GPU, started and warmed up before something is measured."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from integration.harness.diapause import REAL_GPU
from integration.harness.tools import install

GIB = 1 << 30
_CODE = """
import json, sys, time
from diapause.runtime.gpud import client
from diapause.runtime.linux.deadline import Deadline
gpu, libcuda, wanted, verb = sys.argv[1:]
with client.connect(gpu, libcuda, Deadline.after(60)) as controller:
    if verb == "stop":
        controller.stop(Deadline.after(20))
    else:
        end = time.monotonic() + 60
        while controller.hello(Deadline.after(20)).segments < int(wanted) and time.monotonic() < end:
            time.sleep(0.1)
        print(json.dumps({"segment_bytes": controller.hello(Deadline.after(20)).segments}))
"""


def settings(folder: Path, gigabytes: int) -> dict[str, str]:
    """The environment under which snapshots go into memory that lies ready; makes the folder for them."""
    memory = folder / "memory"
    memory.mkdir(mode=0o700)
    tier = int(gigabytes * 1e9) // GIB + 3 if REAL_GPU else 1
    return {
        "DIAPAUSE_SNAPSHOT_PLACEMENT": "local",
        "DIAPAUSE_SNAPSHOT_MEMORY_DIR": str(memory),
        "DIAPAUSE_GPU_MEMORY_TIER": f"{tier}GiB" if REAL_GPU else "256MiB",
        "DIAPAUSE_GPU_IDLE_TIMEOUT": "0" if REAL_GPU else "60",
        "DIAPAUSE_GPU_POOL": "1GiB" if REAL_GPU else "64MiB",
    }


def warm(libcuda: str, env: Mapping[str, str], bytes_: int) -> dict[str, object]:
    """Start it and wait until so many bytes of memory lie ready for snapshots."""
    answer: dict[str, object] = json.loads(_ask("warm", libcuda, env, bytes_))
    return answer


def stop(libcuda: str, env: Mapping[str, str]) -> None:
    try:
        _ask("stop", libcuda, env, 0)
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        print(f"stop of the controller: {error}", flush=True)


def _ask(verb: str, libcuda: str, env: Mapping[str, str], bytes_: int) -> str:
    argv = [str(install().bin / "python3"), "-I", "-c", _CODE, _gpu(), libcuda, str(bytes_), verb]
    done = subprocess.run(argv, env=dict(env), capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, f"controller: {done.stderr[-1500:]}"
    return done.stdout


def _gpu() -> str:
    argv = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.split()[0]
