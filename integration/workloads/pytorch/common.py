# SPDX-License-Identifier: Apache-2.0
"""What these programs share."""

from collections.abc import Iterable
from typing import Any

MASK = (1 << 64) - 1


class Skip(Exception):
    """This program cannot run here; the text is the reason."""


def checksum(torch: Any, tensors: Iterable[Any]) -> int:
    """Every bit of some tensors as 64 bits; exact, so the same in any order of summing."""
    total = 0
    for tensor in tensors:
        words = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        rest = -words.numel() % 4096
        if rest:
            words = torch.nn.functional.pad(words, (0, rest))
        rows = words.view(torch.int32).view(-1, 1024).sum(1, dtype=torch.int64)
        weights = torch.arange(1, rows.numel() + 1, device=rows.device)
        total = (total * 31 + int((rows * weights).sum())) & MASK
    return total


def state_of(optimizer: Any) -> list[Any]:
    """The tensors of an optimizer, in the order of its parameters."""
    return [
        value
        for entry in optimizer.state.values()
        for value in entry.values()
        if hasattr(value, "is_floating_point")
    ]


def value(tensor: Any) -> str:
    """A number that prints with all its bits."""
    return float(tensor.item()).hex()
