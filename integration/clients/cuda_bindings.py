"""A client of the driver through PyPI's cuda-bindings; prints `ok NAME` for each part that works."""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuda.bindings import driver as cu

MIB = 1 << 20
A, C, MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1


def ok(answer: tuple[Any, ...]) -> Any:
    """The values of a call that has to succeed."""
    if answer[0] != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(answer[0]))
    return answer[1] if len(answer) == 2 else answer[1:]


def refused(answer: tuple[Any, ...], name: str) -> None:
    assert answer[0].name == name, answer[0]


def device() -> None:
    ok(cu.cuInit(0))
    assert ok(cu.cuDeviceGetCount()) == 1
    handle = ok(cu.cuDeviceGet(0))
    assert b"Diapause software GPU" in ok(cu.cuDeviceGetName(64, handle))
    attribute = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    assert ok(cu.cuDeviceGetAttribute(attribute, handle)) == 1
    assert len(ok(cu.cuDeviceGetUuid(handle)).bytes) == 16
    assert ok(cu.cuDeviceTotalMem(handle)) >= 64 * MIB
    refused(cu.cuDeviceGet(7), "CUDA_ERROR_INVALID_DEVICE")
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(handle))))


def memory() -> None:
    size = MIB + 4
    p = ok(cu.cuMemAlloc(size))
    base, length = ok(cu.cuMemGetAddressRange(p))
    assert (int(base), int(length)) == (int(p), size)
    ok(cu.cuMemsetD32(p, 0xDEADBEEF, size // 4))
    data = ctypes.create_string_buffer(size)
    ok(cu.cuMemcpyDtoH(data, p, size))
    assert data.raw == b"\xef\xbe\xad\xde" * (size // 4)
    ok(cu.cuMemcpyHtoD(int(p) + 4, b"diapause", 8))
    ok(cu.cuMemcpyDtoH(data, p, 12))
    assert data.raw[:12] == b"\xef\xbe\xad\xdediapause"
    ok(cu.cuMemFree(p))
    refused(cu.cuMemFree(p), "CUDA_ERROR_INVALID_VALUE")
    refused(cu.cuMemAlloc(1 << 50), "CUDA_ERROR_OUT_OF_MEMORY")
    pinned = ok(cu.cuMemHostAlloc(4096, 0))
    ok(cu.cuMemFreeHost(pinned))


def streams() -> None:
    stream = ok(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
    begin, end = ok(cu.cuEventCreate(0)), ok(cu.cuEventCreate(0))
    p = ok(cu.cuMemAlloc(16 * MIB))
    ok(cu.cuEventRecord(begin, stream))
    ok(cu.cuMemsetD8Async(p, 7, 16 * MIB, stream))
    ok(cu.cuEventRecord(end, stream))
    ok(cu.cuStreamWaitEvent(stream, begin, 0))
    ok(cu.cuEventSynchronize(end))
    ok(cu.cuEventQuery(end))
    assert ok(cu.cuEventElapsedTime(begin, end)) >= 0
    ok(cu.cuStreamSynchronize(stream))
    ok(cu.cuStreamQuery(stream))
    ok(cu.cuStreamDestroy(stream))
    ok(cu.cuMemFree(p))


def modules(ptx: bytes) -> None:
    module = ok(cu.cuModuleLoadData(ptx))
    fill = ok(cu.cuModuleGetFunction(module, b"fill"))
    refused(cu.cuModuleGetFunction(module, b"nothing"), "CUDA_ERROR_NOT_FOUND")
    n, seed = 1000, 7
    p = ok(cu.cuMemAlloc(8 * n))
    values = (int(p), n, seed)
    types = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
    ok(cu.cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, 0, (values, types), 0))
    ok(cu.cuCtxSynchronize())
    words = (ctypes.c_uint64 * n)()
    ok(cu.cuMemcpyDtoH(words, p, 8 * n))
    assert list(words) == [((i + seed) * A + C) & MASK for i in range(n)]
    ok(cu.cuModuleUnload(module))


def _properties() -> Any:
    p = cu.CUmemAllocationProp()
    p.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    p.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    p.location.id = 0
    p.requestedHandleTypes = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    return p


def _access() -> Any:
    a = cu.CUmemAccessDesc()
    a.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    a.location.id = 0
    a.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return a


def vmm() -> None:
    fd_type = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    option = cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    size = ok(cu.cuMemGetAllocationGranularity(_properties(), option))
    base = ok(cu.cuMemAddressReserve(2 * size, 0, 0, 0))
    handle = ok(cu.cuMemCreate(size, _properties(), 0))
    ok(cu.cuMemMap(base, size, 0, handle, 0))
    ok(cu.cuMemSetAccess(base, size, [_access()], 1))
    ok(cu.cuMemsetD32(base, 42, size // 4))
    fd = int(ok(cu.cuMemExportToShareableHandle(handle, fd_type, 0)))
    second = ok(cu.cuMemImportFromShareableHandle(fd, fd_type))
    refused(cu.cuMemExportToShareableHandle(second, fd_type, 0), "CUDA_ERROR_INVALID_VALUE")
    ok(cu.cuMemMap(int(base) + size, size, 0, second, 0))
    ok(cu.cuMemSetAccess(base, 2 * size, [_access()], 1))
    word = ctypes.c_uint32()
    ok(cu.cuMemcpyDtoH(ctypes.addressof(word), int(base) + 2 * size - 4, 4))
    assert word.value == 42
    ok(cu.cuMemUnmap(base, 2 * size))
    for each in (handle, second):
        ok(cu.cuMemRelease(each))
    ok(cu.cuMemAddressFree(base, 2 * size))


def main() -> None:
    ptx = Path(sys.argv[1]).read_bytes() + b"\0"
    parts: dict[str, Callable[[], None]] = {
        "device": device,
        "memory": memory,
        "streams": streams,
        "modules": lambda: modules(ptx),
        "vmm": vmm,
    }
    for name, run in parts.items():
        run()
        print("ok", name, flush=True)


if __name__ == "__main__":
    main()
