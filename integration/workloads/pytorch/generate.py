# SPDX-License-Identifier: Apache-2.0
"""Inference: a small transformer with a KV cache that stays in place; each token is a CUDA graph."""

import math
from typing import Any

from common import checksum

WORDS, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 2048, 512, 8, 4, 512, 4


class Program:
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        self.torch, self.device = torch, device
        half = torch.bfloat16 if device.type == "cuda" else torch.float32
        torch.use_deterministic_algorithms(False)  # its way for index_copy_ sorts; no place is written twice
        self.layers = [Layer(torch, device, half) for _ in range(LAYERS)]
        self.words = torch.randn(WORDS, WIDTH, device=device, dtype=half) * 0.5
        self.places = torch.randn(LENGTH, WIDTH, device=device, dtype=half) * 0.1
        self.token = torch.arange(BATCH, device=device)
        self.place = torch.zeros(1, dtype=torch.int64, device=device)
        self.count = 0
        with torch.inference_mode():
            self._token()
            self.replay = self._capture() if device.type == "cuda" else self._token

    def _token(self) -> None:
        """The token after `token` at `place`, greedily; everything lies where it lay before."""
        torch = self.torch
        state = self.words[self.token] + self.places.index_select(0, self.place)
        for layer in self.layers:
            state = layer(state, self.place)
        logits = (state @ self.words.T).float()
        self.token.copy_(
            (logits.argmax(1) + self.place * 7 + torch.arange(BATCH, device=self.device)) % WORDS
        )
        self.place.add_(1).remainder_(LENGTH)

    def _capture(self) -> Any:
        cuda = self.torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(3):
                self._token()
        cuda.current_stream().wait_stream(side)
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            self._token()
        return self.graph.replay

    def step(self, number: int) -> str:
        with self.torch.inference_mode():
            for _ in range(8):
                self.replay()
            return ",".join(str(token) for token in self.token.tolist())

    def checksum(self) -> int:
        with self.torch.inference_mode():
            return checksum(self.torch, [t for layer in self.layers for t in (layer.keys, layer.values)])


class Layer:
    """Attention over the cache and a feed-forward part."""

    def __init__(self, torch: Any, device: Any, half: Any) -> None:
        def weight(*shape: int) -> Any:
            return torch.randn(*shape, device=device, dtype=half) / math.sqrt(shape[0])

        self.torch = torch
        self.into, self.out = weight(WIDTH, 3 * WIDTH), weight(WIDTH, WIDTH)
        self.wide, self.narrow = weight(WIDTH, 4 * WIDTH), weight(4 * WIDTH, WIDTH)
        shape = (BATCH, HEADS, LENGTH, WIDTH // HEADS)
        self.keys = torch.zeros(shape, device=device, dtype=half)
        self.values = torch.zeros(shape, device=device, dtype=half)
        self.numbers = torch.arange(LENGTH, device=device)

    def __call__(self, state: Any, place: Any) -> Any:
        torch = self.torch
        heads = (BATCH, HEADS, 1, WIDTH // HEADS)
        query, key, value = (state @ self.into).split(WIDTH, 1)
        self.keys.index_copy_(2, place, key.reshape(heads))
        self.values.index_copy_(2, place, value.reshape(heads))
        scores = query.reshape(heads) @ self.keys.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        scores = scores.masked_fill(self.numbers > place, float("-inf"))
        seen = scores.float().softmax(3).to(self.values.dtype) @ self.values
        state = state + seen.reshape(BATCH, WIDTH) @ self.out
        state = torch.nn.functional.layer_norm(state, (WIDTH,))
        return state + torch.nn.functional.silu(state @ self.wide) @ self.narrow
