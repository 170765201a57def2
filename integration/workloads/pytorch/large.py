# SPDX-License-Identifier: Apache-2.0
"""A training of --gigabytes: 4.3 GB of parameters, gradients and Adam's state, the rest 256 MiB tensors.

Each step changes one of the tensors as well, so that nothing of it can be left behind unnoticed.
"""

from typing import Any

from common import MASK, checksum, state_of, value

WIDTH, LAYERS, TENSOR = 4096, 16, 64 << 20
BYTES = LAYERS * WIDTH * WIDTH * 16  # parameters, gradients and two moments


class Program:
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        self.torch, self.device = torch, device
        scale = 1 if device.type == "cuda" else 16  # a rehearsal has no room
        width, words = WIDTH // scale, TENSOR // scale**2
        layers = [torch.nn.Linear(width, width) for _ in range(LAYERS)]
        self.model = torch.nn.Sequential(*layers).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        count = max(0, round((options.gigabytes * 1e9 - BYTES) / (TENSOR * 4)))
        self.tensors = [torch.randn(words, device=device) for _ in range(count)]
        self.data = torch.randn(64, width, device=device)
        self.goal = torch.randn(64, width, device=device)
        for number in range(1, 3):
            self.step(number)

    def step(self, number: int) -> str:
        error = (self.model(self.data) - self.goal).square().mean()
        self.optimizer.zero_grad()
        error.backward()
        self.optimizer.step()
        if self.tensors:
            self.tensors[number % len(self.tensors)].mul_(-1).add_(error.detach())
        return value(error)

    def checksum(self) -> int:
        tensors = sum(checksum(self.torch, [tensor]) * (i + 1) for i, tensor in enumerate(self.tensors))
        return tensors + checksum(self.torch, [*self.model.parameters(), *state_of(self.optimizer)]) & MASK
