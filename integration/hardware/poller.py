"""64 threads that poll while the GPU is taken away: twenty times there and back."""

import tempfile
import time
from pathlib import Path

from integration.hardware.options import Options
from integration.harness.bundle import Runtime
from integration.harness.stuck import told_after
from integration.harness.tools import toolset

ROUNDS = 20
WORKLOAD = ("/opt/poller", "--mode", "both", "--threads", "64")


def run(out: Path, options: Options) -> dict[str, object]:
    del out, options
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="dp-") as folder:
        runtime = Runtime(Path(folder), toolset("current"))
        container = runtime.bundle(*WORKLOAD).run()
        try:
            container.output.wait_step(5)
            for number in range(ROUNDS):
                image = Path(folder) / f"image-{number % 2}"
                start = time.monotonic()
                container.checkpoint(image)
                down = time.monotonic()
                with told_after(25, ("poller", "diapause", "criu"), runtime.settings.run_dir):
                    container.restore(image)
                up = time.monotonic()
                container.goes_on(by=3)
                rounds.append({"checkpoint_s": round(down - start, 3), "restore_s": round(up - down, 3)})
                print(number, rounds[-1], flush=True)
        finally:
            runtime.clean()
    return {"ok": len(rounds) == ROUNDS, "threads": 64, "rounds": rounds}
