# SPDX-License-Identifier: Apache-2.0
"""A kernel written in Triton, compiled here, on a large array of words."""

from typing import Any

import compiled
from common import Skip, checksum

WORDS = 8 << 20


class Program:
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        compiled.needs()
        if device.type != "cuda":
            raise Skip("no GPU, which Triton needs")
        import triton  # type: ignore[import-not-found]
        from step_kernel import step

        self.torch = torch
        self.words = torch.arange(WORDS, device=device, dtype=torch.int64)
        self.launch = lambda: step[(triton.cdiv(WORDS, 1024),)](self.words, WORDS, BLOCK=1024)
        self.expected = 0
        self.launch()

    def step(self, number: int) -> str:
        self.launch()
        return f"{int(self.words[:: WORDS // 64].sum()) & (1 << 64) - 1:016x}"

    def checksum(self) -> int:
        return checksum(self.torch, [self.words])
