"""A program that uses its GPU memory all the time: `cuda_program.py`, with libcuda.so.1 to be found.

It reads lines: `rounds` answers how often it has found every byte right, `end` ends it with status 0.
"""

import ctypes
import sys
import threading
import time

SIZES = [100, 5000, 300_000, 1 << 20, (3 << 20) + 17, 9 << 20]
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
memory: list[ctypes.c_uint64] = []
done: list[int] = []  # one for each round
ending = threading.Event()


def must(result: int) -> None:
    if result:
        raise SystemExit(f"CUresult {result}")


def look() -> None:
    """Fails for the first byte that is not what was written."""
    for number, (address, size) in enumerate(zip(memory, SIZES, strict=True)):
        content = (ctypes.c_ubyte * size)()
        must(cuda.cuMemcpyDtoH_v2(content, address, ctypes.c_size_t(size)))
        if bytes(content) != bytes([number + 1]) * size:
            raise SystemExit(f"allocation {number} has another content")


def work() -> None:
    must(cuda.cuCtxSetCurrent(context))
    while not ending.is_set():
        look()
        done.append(1)
        time.sleep(0.001)


def main() -> None:
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    for number, size in enumerate(SIZES):
        memory.append(ctypes.c_uint64())
        must(cuda.cuMemAlloc_v2(ctypes.byref(memory[-1]), ctypes.c_size_t(size)))
        must(cuda.cuMemsetD8_v2(memory[-1], ctypes.c_ubyte(number + 1), ctypes.c_size_t(size)))
    worker = threading.Thread(target=work)
    worker.start()
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        print(len(done), flush=True)
    ending.set()
    worker.join()
    look()


main()
