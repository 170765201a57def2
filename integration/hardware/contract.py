"""The contract test of the software GPU, on the driver of this machine."""

import os
import subprocess
import tempfile
from pathlib import Path

from integration.hardware import place
from integration.hardware.options import Options
from integration.harness.diapause import Settings
from integration.harness.tools import toolset


def run(out: Path, options: Options) -> dict[str, object]:
    del options
    program = Path(os.environ["DIAPAUSE_NATIVE_TESTS"]) / "contract"
    with tempfile.TemporaryDirectory(prefix="dp-") as folder:
        libcuda = place.libcuda(Settings.make(Path(folder), toolset("current")))
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
