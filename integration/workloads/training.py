#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training whose every step can be compared: prints `step N loss HEX`, at the end `final loss HEX`.

training.py [--steps N] [--gigabytes G]    with PyTorch, parameters, gradients and Adam's state on the GPU
training.py --without-torch …              the same shape in plain Python, for machines without either
"""

import argparse
import random
import sys
import time


def with_torch(steps: int, gigabytes: float) -> None:
    import torch  # type: ignore[import-not-found]

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    width = 4096
    layers = max(1, round(gigabytes * 1e9 / 16 / width / width))  # 16 bytes a parameter with Adam
    modules = [m for _ in range(layers) for m in (torch.nn.Linear(width, width, bias=False), torch.nn.GELU())]
    model = torch.nn.Sequential(*modules).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    print(f"ready {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    loss = 0.0
    for step in range(1, steps + 1):
        data = torch.randn(256, width, device="cuda")
        result = model(data)
        error = torch.nn.functional.mse_loss(result, data.roll(1, 1))
        optimizer.zero_grad(set_to_none=True)
        error.backward()
        optimizer.step()
        loss = error.item()
        print(f"step {step} loss {loss.hex()}", flush=True)
    check = sum(p.double().sum().item() for p in model.parameters())
    print(f"final loss {loss.hex()} parameters {check.hex()}", flush=True)


def without_torch(steps: int) -> None:
    numbers = random.Random(1)
    weights = [numbers.gauss(0, 1) for _ in range(1000)]
    print(f"ready {len(weights)} parameters", flush=True)
    loss = 0.0
    for step in range(1, steps + 1):
        data = [numbers.gauss(0, 1) for _ in weights]
        difference = sum(w * x for w, x in zip(weights, data, strict=True)) - sum(data)
        weights = [w - 1e-4 * difference * x for w, x in zip(weights, data, strict=True)]
        loss = float(difference * difference)
        print(f"step {step} loss {loss.hex()}", flush=True)
        time.sleep(0.01)
    print(f"final loss {loss.hex()} parameters {float(sum(weights)).hex()}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--gigabytes", type=float, default=4.0)
    arguments.add_argument("--without-torch", action="store_true")
    options = arguments.parse_args()
    if options.without_torch:
        without_torch(options.steps)
    else:
        with_torch(options.steps, options.gigabytes)
    sys.stdout.flush()
    time.sleep(3600)  # whoever watches reads the last line from the container's file and ends it


if __name__ == "__main__":
    main()
