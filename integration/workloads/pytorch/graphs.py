# SPDX-License-Identifier: Apache-2.0
"""A whole training step as one CUDA graph, replayed."""

from typing import Any

import eager
from common import checksum, state_of, value


class Program:
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        self.torch, self.device = torch, device
        self.model = eager.model(torch, device)
        on_gpu = device.type == "cuda"
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, capturable=on_gpu)
        self.data = torch.zeros(64, eager.WIDTH, device=device)
        self.error = torch.zeros((), device=device)
        self.replay = self._capture() if on_gpu else self._compute

    def _compute(self) -> None:
        error = self.torch.nn.functional.mse_loss(self.model(self.data), self.data.roll(1, 1))
        self.optimizer.zero_grad(set_to_none=False)
        error.backward()
        self.optimizer.step()
        self.error.copy_(error.detach())

    def _capture(self) -> Any:
        cuda = self.torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(3):
                self._compute()
        cuda.current_stream().wait_stream(side)
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self._compute()
        return self.graph.replay

    def step(self, number: int) -> str:
        self.data.copy_(self.torch.randn(64, eager.WIDTH, device=self.device))
        self.replay()
        return value(self.error)

    def checksum(self) -> int:
        return checksum(self.torch, [*self.model.parameters(), *state_of(self.optimizer)])
