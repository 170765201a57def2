# SPDX-License-Identifier: Apache-2.0
"""The eager training, fed by worker processes through pinned memory."""

from collections.abc import Iterator
from typing import Any

import eager
from common import value

BATCHES = 100_000


class Program(eager.Program):
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        super().__init__(torch, device, options)
        on_gpu = device.type == "cuda"
        loader = torch.utils.data.DataLoader(
            Data(torch),
            batch_size=32,  # CRIU copies nameless files of shared memory up to a limit of 1 MiB each
            num_workers=2,
            pin_memory=on_gpu,
            persistent_workers=True,
            prefetch_factor=4,
        )
        self.batches: Iterator[Any] = iter(loader)
        self.step(0)  # the workers are there when "ready" is printed

    def step(self, number: int) -> str:
        data = next(self.batches).to(self.device, non_blocking=True)
        error = self.torch.nn.functional.mse_loss(self.forward(data), data.roll(1, 1))
        self.optimizer.zero_grad(set_to_none=True)
        error.backward()
        self.optimizer.step()
        return value(error)


class Data:
    """Rows that follow from their number, made in a worker."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __len__(self) -> int:
        return BATCHES * 32

    def __getitem__(self, index: int) -> Any:
        numbers = self.torch.Generator().manual_seed(index)
        return self.torch.randn(eager.WIDTH, generator=numbers)
