#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways in which programs get hold of libcuda, each in a process of its own; a JSON object a line.

`result` is what the driver answered, and `ours` whether it was asked through the interception library.
loading.py [WAY]: all ways, or this one in this process.
"""

import ctypes
import glob
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

SONAME = "libcuda.so.1"
DEEPBIND = 8  # RTLD_DEEPBIND
PATIENCE = 100  # seconds; the first kernel of some libraries takes long


def _use(library: ctypes.CDLL) -> str:
    """cuInit, the primary context, an allocation, a look-up: what every runtime does."""
    version, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    calls = (
        lambda: library.cuInit(0),
        lambda: library.cuDriverGetVersion(ctypes.byref(version)),
        lambda: library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        lambda: library.cuCtxSetCurrent(context),
        lambda: library.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)),
        lambda: library.cuMemsetD8_v2(memory, 7, ctypes.c_size_t(1 << 20)),
        lambda: library.cuMemFree_v2(memory),
        lambda: _look_up(library),
    )
    return f"{[call() for call in calls]} version {version.value}"


def _look_up(library: ctypes.CDLL) -> int:
    """cuMemAlloc by cuGetProcAddress; 0 if what it gives works."""
    found, status, memory = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
    result: int = library.cuGetProcAddress_v2(
        b"cuMemAlloc", ctypes.byref(found), 12000, ctypes.c_uint64(0), ctypes.byref(status)
    )
    if result or not found.value:
        return result or -1
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(found.value)
    return call(ctypes.byref(memory), 4096)


def _ctypes(name: str, mode: int = ctypes.DEFAULT_MODE) -> Callable[[], str]:
    return lambda: _use(ctypes.CDLL(name, mode=mode))


def _absolute(pattern: str) -> Callable[[], str]:
    def way() -> str:
        folders = [
            *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
            f"/usr/lib/{os.uname().machine}-linux-gnu",
        ]
        found = [p for folder in folders if folder for p in sorted(glob.glob(f"{folder}/{pattern}"))]
        if not found:
            raise ModuleNotFoundError(f"no {pattern} in {folders}")
        return _use(ctypes.CDLL(found[0]))

    return way


def _dlmopen() -> str:
    """A namespace of its own: everything that libcuda needs is loaded a second time."""
    libc = ctypes.CDLL(None)
    libc.dlmopen.restype = ctypes.c_void_p
    handle = libc.dlmopen(ctypes.c_long(-1), SONAME.encode(), os.RTLD_NOW)
    if not handle:
        libc.dlerror.restype = ctypes.c_char_p
        raise OSError(libc.dlerror().decode())
    return _use(ctypes.CDLL(SONAME, handle=handle))


def _bindings() -> str:
    from cuda.bindings import driver  # type: ignore[import-not-found]

    (result,) = driver.cuInit(0)
    _, context = driver.cuDevicePrimaryCtxRetain(0)
    driver.cuCtxSetCurrent(context)
    allocated, _ = driver.cuMemAlloc(1 << 20)
    return f"{int(result)} {int(allocated)}"


def _numba() -> str:
    import numpy  # type: ignore[import-not-found]
    from numba import cuda  # type: ignore[import-not-found]

    return str(int(cuda.to_device(numpy.arange(1000)).copy_to_host().sum()))


def _torch() -> str:
    import torch  # type: ignore[import-not-found]

    return str(torch.arange(1000, device="cuda").sum().item())


def _triton() -> str:
    from triton.runtime import driver  # type: ignore[import-not-found]

    return f"device {driver.active.get_current_device()} {driver.active.get_current_target().backend}"


def _cupy() -> str:
    import cupy  # type: ignore[import-not-found]

    return str(int(cupy.arange(1000).sum()))


def _jax() -> str:
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax  # type: ignore[import-not-found]

    return f"{jax.devices()[0].platform} {int(jax.numpy.arange(1000).sum())}"


WAYS: dict[str, Callable[[], str]] = {
    "soname": _ctypes(SONAME),
    "unversioned": _ctypes("libcuda.so"),
    "absolute path": _absolute("libcuda.so.1"),
    "absolute path, versioned": _absolute("libcuda.so.*.*"),
    "RTLD_GLOBAL": _ctypes(SONAME, ctypes.RTLD_GLOBAL),
    "RTLD_DEEPBIND": _ctypes(SONAME, os.RTLD_NOW | DEEPBIND),
    "RTLD_LAZY": _ctypes(SONAME, os.RTLD_LAZY),
    "dlmopen": _dlmopen,
    "cuda-bindings": _bindings,
    "numba": _numba,
    "torch": _torch,
    "triton": _triton,
    "cupy": _cupy,
    "jax": _jax,
}
NEEDS = {"cuda-bindings": "cuda", "numba": "numba", "torch": "torch", "triton": "triton", "cupy": "cupy",
         "jax": "jax"}  # fmt: skip


def _ours() -> bool:
    """Whether the interception library runs in this process: its page is a file that has a name."""
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return any("diapause-control" in os.readlink(link) for link in links if os.path.islink(link))


def _one(name: str) -> dict[str, object]:
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        return {"way": name, "skipped": f"no {NEEDS[name]}"}
    try:
        return {"way": name, "result": WAYS[name](), "ours": _ours()}
    except ModuleNotFoundError as error:
        return {"way": name, "skipped": str(error)}
    except Exception as error:
        return {"way": name, "result": f"{type(error).__name__}: {error}"[:500], "ours": _ours()}


def _apart(name: str) -> dict[str, object]:
    try:
        done = subprocess.run(
            [sys.executable, __file__, name], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return {"way": name, "result": f"hangs for {PATIENCE} s", "ours": False}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"way": name, "result": f"status {done.returncode}: {done.stderr[-300:]}", "ours": False}
    loaded: dict[str, object] = json.loads(lines[-1])
    return loaded


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(_one(sys.argv[1])), flush=True)
        os._exit(0)  # not through the exit handlers of all these libraries
    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(_apart, WAYS):
            print(json.dumps(result), flush=True)
    print("all ways", flush=True)


if __name__ == "__main__":
    main()
