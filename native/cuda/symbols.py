#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: T201
"""Write or check symbols.def and gates.def: every function that a libcuda exports, and its signature.

    symbols.py HEADERS            writes both
    symbols.py --check HEADERS    exits 1 and says what differs
    symbols.py --nm LIBCUDA       exits 1 and lists functions of that library that the table lacks

HEADERS is a directory with cuda.h, or the wheel nvidia-cuda-runtime of PyPI, which carries it.
"""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from prototypes import Prototypes

HERE = Path(__file__).resolve().parent
TABLE = HERE / "symbols.def"
GATES = HERE / "gates.def"
HEADERS = re.compile(r"(?:^|/)cuda(|GL|EGL|VDPAU|Profiler)(Typedefs)?\.h$")
TITLE = """\
/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function that a libcuda exports, written by symbols.py from the CUDA {version} headers and
 * extra.txt. REPLACE: the entry leads to replaced_NAME of ours; GATE: to gated_NAME, which passes the
 * gate and calls the real one (gates.def); FORWARD: straight to the real one.
 */
"""
GATES_TITLE = """\
/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that pass the gate, written by symbols.py from the CUDA {version} headers: parameters
 * as the C ABI hands them over, so that pointers are void * and enumerations int.
 */
"""

# Replaced in every variant that is known; a variant that is not here is refused (resolver.c).
REPLACED = {
    "cuInit",
    "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetProcAddress_v2_ptsz",
    # gate_capture.c
    "cuStreamBeginCapture", "cuStreamBeginCapture_ptsz",
    "cuStreamBeginCapture_v2", "cuStreamBeginCapture_v2_ptsz",
    "cuStreamBeginCaptureToGraph", "cuStreamBeginCaptureToGraph_ptsz",
    "cuStreamEndCapture", "cuStreamEndCapture_ptsz",
    "cuStreamDestroy", "cuStreamDestroy_v2",
    # gate_callback.c
    "cuLaunchHostFunc", "cuLaunchHostFunc_ptsz",
    "cuStreamAddCallback", "cuStreamAddCallback_ptsz",
    "cuGraphHostNodeGetParams",
    # memory.c, memory_count.c
    "cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemFree_v2", "cuMemGetAddressRange_v2",
    "cuMemAllocAsync", "cuMemAllocAsync_ptsz",
    "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz",
    "cuMemFreeAsync", "cuMemFreeAsync_ptsz",
    "cuMemAllocManaged",
    "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemFreeHost",
    "cuMemHostRegister_v2", "cuMemHostUnregister",
    "cuIpcGetMemHandle", "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle",
    "cuMemPoolImportPointer",
    # memory_context.c
    "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4", "cuCtxFromGreenCtx",
    "cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxEnablePeerAccess",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2",
    # attributes.c
    "cuPointerGetAttribute", "cuPointerGetAttributes", "cuPointerSetAttribute",
    "cuMemHostGetDevicePointer_v2", "cuMemHostGetFlags",
    # vmm.c, vmm_map.c, vmm_share.c
    "cuMemCreate", "cuMemRelease", "cuMemRetainAllocationHandle",
    "cuMemGetAllocationPropertiesFromHandle",
    "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemMapArrayAsync", "cuMemMapArrayAsync_ptsz",
    "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
    "cuMulticastCreate", "cuMulticastAddDevice", "cuMulticastBindMem", "cuMulticastBindAddr",
    "cuMulticastUnbind",
}  # fmt: skip

# Not gated: what asks about the machine, the process or the thread and touches no context, stream, event,
# memory or code; the driver answers it at any time, also in the middle of its own checkpoint.
UNGATED = re.compile(
    r"cu(DriverGetVersion|DeviceGet\w*|DeviceTotalMem|DeviceComputeCapability|DeviceCanAccessPeer"
    r"|GetError\w+|GetExportTable|CtxGetCurrent|ThreadExchangeStreamCaptureMode|ParamSet\w+"
    r"|Checkpoint\w+|Coredump\w+|Logs\w+|dbg\w+|(GL|VDPAU|WGL)GetDevices?|GLInit|EGLApiInit"
    r"|MemGetAttribute)(_v\d+)?"
)

DECLARED = re.compile(r"\bCUDAAPI\s+(cu\w+)\s*\(")
RENAMED = re.compile(r"#\s*define\s+cu\w+\s+(?:__CUDA_API_(PTDS|PTSZ)\s*\(\s*)?(cu\w+)")
POINTER = re.compile(r"\bCUDAAPI\s*\*\s*PFN_(cu\w+?)_v\d+(?:_pts[zd]|_ptds)?\)")
VERSION = re.compile(r"#define\s+CUDA_VERSION\s+(\d+)")


def headers(source: Path) -> Iterator[str]:
    """The text of every header that declares driver functions."""
    if source.is_dir():
        for path in sorted(source.rglob("*.h")):
            if HEADERS.search(str(path)):
                yield path.read_text(errors="replace")
        return
    with zipfile.ZipFile(source) as wheel:
        for name in sorted(wheel.namelist()):
            if HEADERS.search(name):
                yield wheel.read(name).decode(errors="replace")


def declared(text: str) -> set[str]:
    """The exported names that one header speaks of, per-thread variants included."""
    names = set(DECLARED.findall(text)) | set(POINTER.findall(text))
    for suffix, name in RENAMED.findall(text):
        names.add(name)
        if suffix:
            names.add(f"{name}_{suffix.lower()}")
    return names


def extra() -> set[str]:
    lines = (HERE / "extra.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def kind(name: str, prototypes: Prototypes) -> str:
    if name in REPLACED:
        return "REPLACE"
    if UNGATED.fullmatch(name):
        return "FORWARD"
    if name not in prototypes.parameters:
        print(f"{name}: no declaration, so it cannot pass the gate", file=sys.stderr)
        return "FORWARD"
    return "GATE"


def tables(source: Path) -> dict[Path, str]:
    """What symbols.def and gates.def have to hold."""
    texts = list(headers(source))
    number = next((int(n) for text in texts for n in VERSION.findall(text)), 0)
    if not number:
        raise SystemExit(f"{source}: no cuda.h in there")
    version = f"{number // 1000}.{number % 1000 // 10}"
    prototypes = Prototypes(texts)
    names = sorted(set().union(extra(), *map(declared, texts)))
    kinds = {name: kind(name, prototypes) for name in names}
    return {
        TABLE: TITLE.format(version=version) + "".join(f"{kinds[name]}({name})\n" for name in kinds),
        GATES: GATES_TITLE.format(version=version)
        + "".join(f"{prototypes.gate(name)}\n" for name in kinds if kinds[name] == "GATE"),
    }


def listed() -> set[str]:
    return set(re.findall(r"^(?:FORWARD|GATE|REPLACE)\((\w+)\)$", TABLE.read_text(), re.M))


def lacking(library: str) -> list[str]:
    """Functions that `library` exports and the table does not know."""
    argv = ["nm", "-D", "--defined-only", library]
    output = subprocess.run(argv, check=True, text=True, capture_output=True).stdout
    rows = (line.split() for line in output.splitlines())
    names = {row[-1].split("@")[0] for row in rows if len(row) == 3 and row[1] in "TWi"}
    return sorted(name for name in names - listed() if name.startswith("cu"))


def main(argv: list[str]) -> int:
    flags, arguments = [a for a in argv if a.startswith("--")], [a for a in argv if not a.startswith("--")]
    if len(arguments) != 1 or flags not in ([], ["--check"], ["--nm"]):
        print(__doc__, file=sys.stderr)
        return 2
    if flags == ["--nm"]:
        missing = lacking(arguments[0])
        print("\n".join(missing) or f"all of them are among the {len(listed())} of the table")
        return 1 if missing else 0
    wanted = tables(Path(arguments[0]))
    if not flags:
        for path, text in wanted.items():
            path.write_text(text)
        return 0
    differ = [path for path, text in wanted.items() if path.read_text() != text]
    for path in differ:
        have, want = (set(text.splitlines()) for text in (path.read_text(), wanted[path]))
        for line in sorted(want ^ have):
            print(f"{path.name} {'lacks' if line in want else 'should not have'} {line}")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
