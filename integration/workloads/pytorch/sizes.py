# SPDX-License-Identifier: Apache-2.0
"""A training whose batches have another size each step, beside tensors that come and go: for the allocators.

--allocator expandable_segments:True makes PyTorch use virtual memory, backend:cudaMallocAsync CUDA's pools.
"""

import random
from typing import Any

import eager
from common import MASK, checksum, value

KEPT = 24  # tensors
EMPTIED = 40  # steps after which all cached memory goes back to the driver


class Program(eager.Program):
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        super().__init__(torch, device, options)
        self.numbers = random.Random(options.seed)
        self.kept: list[tuple[Any, int]] = []

    def step(self, number: int) -> str:
        torch = self.torch
        rows = self.numbers.randrange(8, 256)
        data = torch.randn(rows, eager.WIDTH, device=self.device)
        error = torch.nn.functional.mse_loss(self.forward(data), data.roll(1, 1))
        self.optimizer.zero_grad(set_to_none=True)
        error.backward()
        self.optimizer.step()
        self._exchange()
        if number % EMPTIED == 0 and self.device.type == "cuda":
            torch.cuda.empty_cache()
        return value(error)

    def _exchange(self) -> None:
        """One tensor of a random size comes, a random one goes and must be as it was made."""
        words = self.numbers.choice((100, 5000, 300_000, 3_000_000, 12_000_000))
        fill = self.numbers.randrange(1 << 30)
        self.kept.append((self.torch.full((words,), fill, dtype=self.torch.int32, device=self.device), fill))
        if len(self.kept) > KEPT:
            tensor, fill = self.kept.pop(self.numbers.randrange(KEPT))
            if not bool((tensor == fill).all()):
                print(f"BAD tensor of {tensor.numel()} words is not {fill} throughout", flush=True)
                raise SystemExit(9)

    def checksum(self) -> int:
        return super().checksum() + checksum(self.torch, [tensor for tensor, _ in self.kept]) & MASK
