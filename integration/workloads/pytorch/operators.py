# SPDX-License-Identifier: Apache-2.0
"""What PyTorch hands to cuBLAS, cuDNN, cuFFT, cuSOLVER and cuRAND, on several streams."""

from typing import Any

from common import checksum, value


class Program:
    def __init__(self, torch: Any, device: Any, options: Any) -> None:
        self.torch, self.device = torch, device
        nn = torch.nn
        self.square = torch.randn(512, 512, device=device)
        self.double = torch.randn(256, 256, device=device, dtype=torch.float64)
        # On a CPU oneDNN would use AMX, whose permission CRIU does not restore: SIGILL.
        half = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.half = torch.randn(512, 512, device=device, dtype=half)
        self.picture = torch.randn(8, 16, 64, 64, device=device)
        self.convolution = nn.Conv2d(16, 16, 3, padding=1).to(device)
        self.recurrent = nn.GRU(64, 64, 2, batch_first=True).to(device)
        self.sequence = torch.randn(8, 32, 64, device=device)
        self.signal = torch.randn(64, 4096, device=device)
        self.streams = [torch.cuda.Stream() for _ in range(3)] if device.type == "cuda" else []

    def step(self, number: int) -> str:
        torch = self.torch
        with torch.no_grad():
            self._on(0, self._matrices)
            self._on(1, self._pictures)
            self._on(2, self._signals)
            for stream in self.streams:
                torch.cuda.current_stream().wait_stream(stream)
            noise = torch.rand(64, device=self.device).mean()
            total = self.square.double().sum() + self.double.sum() + self.half.double().sum()
            return value(total + self.picture.double().sum() + self.signal.double().sum() + noise)

    def _on(self, number: int, call: Any) -> None:
        if not self.streams:
            call()
            return
        stream = self.streams[number]
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            call()

    def _matrices(self) -> None:
        torch = self.torch
        self.square.copy_(torch.tanh(self.square @ self.square * 0.05))
        self.half.copy_(torch.tanh(self.half @ self.half * 0.05))
        product = self.double @ self.double.T + 256 * torch.eye(256, device=self.device, dtype=torch.float64)
        factor = torch.linalg.cholesky(product)
        self.double.copy_(torch.linalg.solve_triangular(factor, self.double, upper=False).roll(1, 0))

    def _pictures(self) -> None:
        torch = self.torch
        self.picture.copy_(torch.tanh(self.convolution(self.picture)))
        sequence, _ = self.recurrent(self.sequence)
        self.sequence.copy_(sequence)

    def _signals(self) -> None:
        fft = self.torch.fft
        waves = fft.rfft(self.signal)
        self.signal.copy_(fft.irfft(waves * 0.999, n=4096).roll(3, 1))

    def checksum(self) -> int:
        return checksum(
            self.torch,
            (self.square, self.double, self.half, self.picture, self.sequence, self.signal),
        )
