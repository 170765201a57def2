"""A program with device memory, on the driver library that it is told: tests hand its memory over.

Speaks wire.py on the fd of a socket pair: {"op": "make", "blocks": [[seed, …], …]} answers with an fd for
each allocation, whose blocks of 2 MiB hold what `contents(seed)` gives; {"op": "read"} with fds gets digests.
"""

import ctypes
import hashlib
import random
import socket
import sys

from diapause.runtime.gpud import wire
from diapause.runtime.gpud.cuda import Device, Driver
from diapause.runtime.store.gpu_index import BLOCK


def contents(seed: int) -> bytes:
    """A block: zeros for 0, one word at the end for negative seeds, noise for others."""
    if seed == 0:
        return bytes(BLOCK)
    if seed < 0:
        return bytes(BLOCK - 8) + (-seed).to_bytes(8, "little")
    return random.Random(seed).randbytes(BLOCK)


def digest(seeds: list[int]) -> str:
    return hashlib.sha256(b"".join(map(contents, seeds))).hexdigest()


def make(device: Device, seeds: list[int]) -> int:
    size = BLOCK * len(seeds)
    handle = device.create(size)
    at = device.reserve(size)
    device.map(at, size, handle)
    device.allow(at, size)
    data = ctypes.create_string_buffer(b"".join(map(contents, seeds)), size)
    copy(device, "cuMemcpyHtoDAsync_v2", at, ctypes.addressof(data), size)
    fd = device.export(handle)
    device.unmap(at, size)
    device.unreserve(at, size)
    device.release(handle)
    return fd


def read(device: Device, fd: int, size: int) -> str:
    handle = device.import_(fd)
    at = device.reserve(size)
    device.map(at, size, handle)
    device.allow(at, size)
    data = ctypes.create_string_buffer(size)
    copy(device, "cuMemcpyDtoHAsync_v2", ctypes.addressof(data), at, size)
    device.unmap(at, size)
    device.unreserve(at, size)
    device.release(handle)
    return hashlib.sha256(data.raw).hexdigest()


def copy(device: Device, call: str, to: int, source: int, size: int) -> None:
    device.driver.call(call, to, source, size, None)
    device.driver.call("cuStreamSynchronize", None)


def main() -> None:
    end = socket.socket(fileno=int(sys.argv[1]))
    driver = Driver(sys.argv[2])
    ordinal, uuid = driver.devices()[0]
    device = Device(driver, ordinal, uuid)
    while (received := wire.receive(end)) is not None:
        message, fds = received
        if message["op"] == "make":
            made = [make(device, seeds) for seeds in message["blocks"]]
            wire.send(end, {"uuid": uuid.hex()}, made)
            wire.close_all(made)
        else:
            found = [read(device, fd, size) for fd, size in zip(fds, message["sizes"], strict=True)]
            wire.send(end, {"digests": found})
        wire.close_all(fds)


if __name__ == "__main__":
    main()
