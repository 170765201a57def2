"""The driver's functions that a controller calls, by ctypes; the GIL is free inside each of them.

Names, types and numbers are those of cuda.h (12.0 and later). The library is given by its path: never
one that a search path or a container offers.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

OUT_OF_MEMORY = 2
DEVICE_UNAVAILABLE = 46  # exclusive compute mode, and somebody has it

_SCHED_BLOCKING_SYNC = 4  # a thread that waits sleeps: there are as many as cores
_POSIX_FD = 1
_PINNED = 1
_ON_DEVICE = 1
_READ_WRITE = 3
_NON_BLOCKING = 1
_RDMA_WITH_VMM = 110  # CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", c_int), ("id", c_int))


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location", Location),
        ("win32", c_void_p),
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class AccessDescription(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", Location), ("flags", c_int))


class CudaError(Exception):
    """A call that did not return CUDA_SUCCESS."""

    def __init__(self, call: str, result: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({result})")
        self.call = call
        self.result = result


_SIGNATURES: dict[str, tuple[type, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetUuid_v2": (c_char_p, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxSetFlags_v2": (c_int, c_uint),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemCreate": (POINTER(c_uint64), c_size_t, POINTER(AllocationProperties), c_uint64),
    "cuMemRelease": (c_uint64,),
    "cuMemAddressReserve": (POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemAddressFree": (c_uint64, c_size_t),
    "cuMemMap": (c_uint64, c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemUnmap": (c_uint64, c_size_t),
    "cuMemSetAccess": (c_uint64, c_size_t, POINTER(AccessDescription), c_size_t),
    "cuMemExportToShareableHandle": (POINTER(c_int), c_uint64, c_int, c_uint64),
    "cuMemImportFromShareableHandle": (POINTER(c_uint64), c_void_p, c_int),
    "cuMemGetAllocationPropertiesFromHandle": (POINTER(AllocationProperties), c_uint64),
    "cuMemGetAllocationGranularity": (POINTER(c_size_t), POINTER(AllocationProperties), c_int),
    "cuMemHostRegister_v2": (c_void_p, c_size_t, c_uint),
    "cuMemHostUnregister": (c_void_p,),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, POINTER(c_void_p), c_void_p),
}


class Driver:
    """A loaded driver library. Every method raises CudaError."""

    def __init__(self, path: str) -> None:
        """Load and initialise it. Raises OSError, AttributeError for a library without our functions."""
        self._library = ctypes.CDLL(path)
        self._functions = {name: self._bind(name, types) for name, types in _SIGNATURES.items()}
        self._error_name = self._bind("cuGetErrorName", (c_int, POINTER(c_char_p)))
        self.software = hasattr(self._library, "diapause_softgpu_version")
        self.call("cuInit", 0)

    def _bind(self, name: str, types: tuple[type, ...]) -> ctypes._FuncPointer:
        function = self._library[name]
        function.restype = c_int
        function.argtypes = types
        return function

    def call(self, name: str, *arguments: object) -> None:
        result = self._functions[name](*arguments)
        if result:
            text = c_char_p()
            self._error_name(result, byref(text))
            raise CudaError(name, result, (text.value or b"unknown").decode(errors="replace"))

    def devices(self) -> list[tuple[int, bytes]]:
        """Ordinal and UUID of each GPU."""
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        return [(ordinal, self._uuid(ordinal)) for ordinal in range(count.value)]

    def _uuid(self, ordinal: int) -> bytes:
        device = c_int()
        self.call("cuDeviceGet", byref(device), ordinal)
        uuid = ctypes.create_string_buffer(16)
        self.call("cuDeviceGetUuid_v2", uuid, device)
        return uuid.raw


class Device:
    """A GPU with its primary context. A thread calls activate() before it uses anything else."""

    def __init__(self, driver: Driver, ordinal: int, uuid: bytes) -> None:
        self.driver = driver
        self.uuid = uuid
        self._device = c_int()
        driver.call("cuDeviceGet", byref(self._device), ordinal)
        driver.call("cuDevicePrimaryCtxSetFlags_v2", self._device, _SCHED_BLOCKING_SYNC)
        self._context = c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", byref(self._context), self._device)
        self.activate()
        self._properties = self._memory_properties()
        granularity = c_size_t()
        driver.call("cuMemGetAllocationGranularity", byref(granularity), byref(self._properties), 0)
        self.granularity = granularity.value  # bytes

    def _memory_properties(self) -> AllocationProperties:
        """As our library in the containers makes it: the memory comes back the way it was."""
        rdma = c_int()
        self.driver.call("cuDeviceGetAttribute", byref(rdma), _RDMA_WITH_VMM, self._device)
        location = Location(_ON_DEVICE, self._device.value)
        return AllocationProperties(
            type=_PINNED, handle_types=_POSIX_FD, location=location, rdma=int(bool(rdma.value))
        )

    def activate(self) -> None:
        self.driver.call("cuCtxSetCurrent", self._context)

    def memory(self) -> tuple[int, int]:
        """Free and total bytes."""
        free, total = c_size_t(), c_size_t()
        self.driver.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def create(self, size: int) -> int:
        """The handle of new memory that can be exported."""
        handle = c_uint64()
        try:
            self.driver.call("cuMemCreate", byref(handle), size, byref(self._properties), 0)
        except CudaError as e:
            if e.result == OUT_OF_MEMORY or not self._properties.rdma:
                raise
            self._properties.rdma = 0  # the device has it, the machine does not let us
            return self.create(size)
        return handle.value

    def export(self, handle: int) -> int:
        """An fd of the memory; the caller owns it."""
        fd = c_int(-1)
        self.driver.call("cuMemExportToShareableHandle", byref(fd), handle, _POSIX_FD, 0)
        return fd.value

    def import_(self, fd: int) -> int:
        """The handle of memory that somebody exported on this GPU; the fd stays the caller's."""
        handle = c_uint64()
        self.driver.call("cuMemImportFromShareableHandle", byref(handle), c_void_p(fd), _POSIX_FD)
        return handle.value

    def is_here(self, handle: int) -> bool:
        """Whether it is memory of this GPU."""
        found = AllocationProperties()
        self.driver.call("cuMemGetAllocationPropertiesFromHandle", byref(found), handle)
        return bool(found.location.type == _ON_DEVICE and found.location.id == self._device.value)

    def release(self, handle: int) -> None:
        self.driver.call("cuMemRelease", handle)

    def reserve(self, size: int) -> int:
        address = c_uint64()
        self.driver.call("cuMemAddressReserve", byref(address), size, 0, 0, 0)
        return address.value

    def unreserve(self, address: int, size: int) -> None:
        self.driver.call("cuMemAddressFree", address, size)

    def map(self, address: int, size: int, handle: int) -> None:
        self.driver.call("cuMemMap", address, size, 0, handle, 0)

    def allow(self, address: int, size: int) -> None:
        """Make what is mapped there readable and writable."""
        access = AccessDescription(Location(_ON_DEVICE, self._device.value), _READ_WRITE)
        self.driver.call("cuMemSetAccess", address, size, byref(access), 1)

    def unmap(self, address: int, size: int) -> None:
        self.driver.call("cuMemUnmap", address, size)

    def register(self, address: int, size: int) -> None:
        """Pin host memory."""
        self.driver.call("cuMemHostRegister_v2", address, size, 0)

    def unregister(self, address: int) -> None:
        self.driver.call("cuMemHostUnregister", address)

    def allocate(self, size: int) -> int:
        address = c_uint64()
        self.driver.call("cuMemAlloc_v2", byref(address), size)
        return address.value

    def free(self, address: int) -> None:
        self.driver.call("cuMemFree_v2", address)

    def stream(self) -> Stream:
        return Stream(self)

    def function(self, ptx: bytes, name: str) -> c_void_p:
        """A kernel of a PTX text, which the driver compiles."""
        module, function = c_void_p(), c_void_p()
        self.driver.call("cuModuleLoadData", byref(module), ptx)
        self.driver.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function


class Stream:
    """Work in order. Owns the stream."""

    __slots__ = ("_call", "_handle")

    def __init__(self, device: Device) -> None:
        self._call = device.driver.call
        self._handle = c_void_p()
        self._call("cuStreamCreate", byref(self._handle), _NON_BLOCKING)

    def to_host(self, to: int, address: int, size: int) -> None:
        """Copy from device memory into pinned memory."""
        self._call("cuMemcpyDtoHAsync_v2", to, address, size, self._handle)

    def to_device(self, address: int, source: int, size: int) -> None:
        self._call("cuMemcpyHtoDAsync_v2", address, source, size, self._handle)

    def clear(self, address: int, size: int) -> None:
        self._call("cuMemsetD8Async", address, 0, size, self._handle)

    def launch(self, function: c_void_p, groups: int, threads: int, *arguments: int) -> None:
        """Start a kernel whose parameters are 64-bit numbers."""
        values = (c_uint64 * len(arguments))(*arguments)
        first = ctypes.addressof(values)
        pointers = (c_void_p * len(arguments))(*range(first, first + 8 * len(arguments), 8))
        shape = (groups, 1, 1, threads, 1, 1, 0)
        self._call("cuLaunchKernel", function, *shape, self._handle, pointers, None)

    def wait(self) -> None:
        self._call("cuStreamSynchronize", self._handle)

    def close(self) -> None:
        self._call("cuStreamDestroy_v2", self._handle)
