#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs whose every step can be compared with another run: python3 pytorch KIND [options].

Prints `ready`, then for each step `step N VALUE at SECONDS`, where VALUE is the same in every run and
SECONDS is CLOCK_MONOTONIC. Each 25 steps and at the end comes `check N HEX`, a checksum of the whole
state. Ends at --steps or at SIGTERM with `ended after N steps`; `skip: REASON` if it cannot run here.
Without a GPU it computes on the CPU.
"""

import argparse
import importlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
KINDS = (
    "eager",
    "compiled",
    "graphs",
    "sizes",
    "loader",
    "generate",
    "operators",
    "kernel",
    "large",
)
CHECK = 25  # steps


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, _stop)
    if options.allocator:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = options.allocator
    import torch  # type: ignore[import-not-found]
    from common import Skip

    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.set_num_threads(2)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        program = importlib.import_module(options.kind).Program(torch, device, options)
    except Skip as reason:
        print(f"skip: {reason}", flush=True)
        return 0
    allocated = torch.cuda.memory_reserved() if device.type == "cuda" else 0
    print(f"ready {options.kind} on {device}, torch {torch.__version__}, {allocated} bytes", flush=True)
    return _run(program, options)


def _run(program: object, options: argparse.Namespace) -> int:
    number = 0
    while not stopping.is_set() and (not options.steps or number < options.steps):
        number += 1
        value = program.step(number)  # type: ignore[attr-defined]
        print(f"step {number} {value} at {time.monotonic():.6f}", flush=True)
        if number % options.check == 0:
            print(f"check {number} {program.checksum():016x}", flush=True)  # type: ignore[attr-defined]
        if options.pace:
            time.sleep(options.pace / 1000)
    if number % options.check:
        print(f"check {number} {program.checksum():016x}", flush=True)  # type: ignore[attr-defined]
    print(f"ended after {number} steps", flush=True)
    return 0


stopping = threading.Event()


def _stop(number: int, frame: object) -> None:
    if stopping.is_set():  # asked twice: not even a step comes to its end
        os._exit(0)
    stopping.set()


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(prog="pytorch")
    arguments.add_argument("kind", choices=KINDS)
    arguments.add_argument("--steps", type=int, default=0, help="0: until SIGTERM")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--pace", type=float, default=5, help="ms of rest after a step")
    arguments.add_argument("--check", type=int, default=CHECK, help="steps from checksum to checksum")
    arguments.add_argument("--gigabytes", type=float, default=27, help="of `large`")
    arguments.add_argument("--allocator", default="", help="PYTORCH_CUDA_ALLOC_CONF")
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(main())
