"""The contract test of the software GPU, on the driver of this machine."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from integration.hardware.options import Options
from integration.harness.diapause import Settings
from integration.harness.tools import toolset


def run(out: Path, options: Options) -> dict[str, object]:
    del options
    program = Path(os.environ["DIAPAUSE_NATIVE_TESTS"]) / "contract"
    with tempfile.TemporaryDirectory(prefix="dp-") as folder:
        libcuda = _libcuda(Settings.make(Path(folder), toolset("current")))
        done = subprocess.run(
            [program, "--library", libcuda], capture_output=True, text=True, timeout=140, check=False
        )
    (out / "contract.txt").write_text(done.stdout + done.stderr)
    return {
        "ok": done.returncode == 0,
        "library": libcuda,
        "checks": len(done.stdout.splitlines()),
        "differences": done.stderr.splitlines()[:200],
    }


def _libcuda(settings: Settings) -> str:
    """The libcuda that containers of this machine are given."""
    document = json.loads((settings.cdi / "gpu.json").read_text())
    edits = [document.get("containerEdits", {}), *(d["containerEdits"] for d in document["devices"])]
    mounts = [mount for edit in edits for mount in edit.get("mounts", [])]
    return next(str(m["hostPath"]) for m in mounts if "/libcuda.so" in m["containerPath"])
