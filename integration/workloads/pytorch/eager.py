# SPDX-License-Identifier: Apache-2.0
"""A training as it is mostly written: dropout (a random state on the GPU), Adam, a loss read each step."""

from typing import Any

from common import checksum, state_of, value

WIDTH = 1024


def model(torch: Any, device: Any) -> Any:
    nn = torch.nn
    layers = [
        part
        for _ in range(4)
        for part in (nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Dropout(0.1))
    ]
    return nn.Sequential(*layers).to(device)


class Program:
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        self.torch, self.device = torch, device
        self.model = model(torch, device)
        self.forward = self.model
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def step(self, number: int) -> str:
        data = self.torch.randn(64, WIDTH, device=self.device)
        error = self.torch.nn.functional.mse_loss(self.forward(data), data.roll(1, 1))
        self.optimizer.zero_grad(set_to_none=True)
        error.backward()
        self.optimizer.step()
        return value(error)

    def checksum(self) -> int:
        return checksum(self.torch, [*self.model.parameters(), *state_of(self.optimizer)])
