import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CUDA = Path(__file__).parents[3] / "native" / "cuda"
SCRIPT = CUDA / "symbols.py"
NAMED = os.environ.get("DIAPAUSE_CUDA_HEADERS")  # before a test clears the environment


def table() -> dict[str, str]:
    lines = re.findall(r"^(FORWARD|GATE|REPLACE)\((\w+)\)$", (CUDA / "symbols.def").read_text(), re.M)
    return {name: kind for kind, name in lines}


def headers() -> Path | None:
    """cuda.h where that can be had: DIAPAUSE_CUDA_HEADERS, or nvidia-cuda-runtime beside pytest."""
    if NAMED:
        return Path(NAMED)
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    found = [path.parent for place in places or [] for path in Path(place).rglob("cuda.h")]
    return found[0] if found else None


def symbols(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], check=False, capture_output=True, text=True)


def test_the_table_is_what_the_headers_declare():
    found = headers()
    if found is None:
        pytest.skip("no cuda.h here: DIAPAUSE_CUDA_HEADERS is not set")

    done = symbols("--check", found)

    assert done.returncode == 0, done.stdout


def test_every_replaced_function_has_its_replacement():
    replaced = {name for name, kind in table().items() if kind == "REPLACE"}
    source = "".join(path.read_text() for path in CUDA.glob("*.c"))

    written = re.findall(r"^CUresult replaced_(\w+)\([^;]*?\)\s*\{", source, re.M)
    by_macro = re.findall(r"^(?:MAKES|ENDS|LEARN)\((cu\w+),", source, re.M)

    assert replaced == {*written, *by_macro}


def test_every_gated_function_has_its_signature():
    gated = {name for name, kind in table().items() if kind == "GATE"}
    signed = re.findall(r"^GATE\((\w+), ", (CUDA / "gates.def").read_text(), re.M)

    assert gated == set(signed)
    assert len(gated) == len(signed)


@pytest.mark.parametrize(
    "name", ["cuLaunchKernel_ptsz", "cuMemcpyHtoDAsync_v2", "cuCtxSynchronize", "cuEventQuery"]
)
def test_what_uses_the_gpu_passes_the_gate(name):
    assert table()[name] == "GATE"


@pytest.mark.parametrize("name", ["cuDeviceGetAttribute", "cuDriverGetVersion", "cuCheckpointProcessLock"])
def test_what_only_asks_about_the_machine_does_not(name):
    assert table()[name] == "FORWARD"


HEADER = """
#define CUDA_VERSION 13000
    #define __CUDA_API_PTSZ(api) api ## _ptsz
#define cuA                         cuA_v2
#define cuB                         __CUDA_API_PTSZ(cuB_v3)
CUresult CUDAAPI cuA(int a);
CUresult CUDAAPI
    cuSplit(int a);
/* CUresult CUDAAPI is what ::cuNobody returns */
"""
TYPEDEFS = "typedef CUresult (CUDAAPI *PFN_cuC_v4000_ptsz)(void);"


def test_every_spelling_of_a_declaration_is_read(tmp_path):
    (tmp_path / "cuda.h").write_text(HEADER)
    (tmp_path / "cudaProfilerTypedefs.h").write_text(TYPEDEFS)

    done = symbols("--check", tmp_path)

    lacking = set(re.findall(r"symbols.def lacks (?:FORWARD|GATE)\((\w+)\)", done.stdout))
    assert done.returncode == 1
    assert lacking - table().keys() == {"cuA", "cuA_v2", "cuB_v3", "cuB_v3_ptsz", "cuSplit", "cuC"}
    assert "should not have GATE(cuMemcpy2D_v2)" in done.stdout


SIGNATURES = """
#define CUDA_VERSION 13000
typedef enum CUmode_enum { CU_MODE_A = 0, CU_MODE_B /* } CUno; */ } CUmode;
typedef struct CUstream_st *CUstream;
typedef void (CUDA_CB *CUhostFn)(void *userData);
typedef CUmode CUstreamMode;
#define cuCopy __CUDA_API_PTSZ(cuCopy_v2)
CUresult CUDAAPI cuCopy(const CUdeviceptr *to, size_t n, CUstream hStream);
CUresult CUDAAPI cuCall(CUstreamMode mode, CUhostFn fn, CUuuid uuids[], unsigned char byte);
CUresult CUDAAPI cuNothing(void);
#undef cuCopy
CUresult CUDAAPI cuCopy(CUdeviceptr_v1 to, unsigned int n);
"""


def test_signatures_are_reduced_to_what_is_handed_over(tmp_path):
    (tmp_path / "cuda.h").write_text(SIGNATURES)

    done = symbols("--check", tmp_path)

    lacking = set(re.findall(r"gates.def lacks (GATE.*)", done.stdout))
    assert lacking == {
        "GATE(cuCopy, (unsigned int to, unsigned int n), (to, n))",
        "GATE(cuCopy_v2, (void *to, size_t n, void *hStream), (to, n, hStream))",
        "GATE(cuCopy_v2_ptsz, (void *to, size_t n, void *hStream), (to, n, hStream))",
        "GATE(cuCall, (int mode, void *fn, void *uuids, unsigned char byte), (mode, fn, uuids, byte))",
        "GATE(cuNothing, (void), ())",
    }


@pytest.mark.parametrize(("parameter", "why"), [("CUpair pair", "CUpair pair: how is that handed over?")])
def test_a_type_that_is_not_known_is_refused(tmp_path, parameter, why):
    (tmp_path / "cuda.h").write_text(f"#define CUDA_VERSION 13000\nCUresult CUDAAPI cuNew({parameter});")

    done = symbols("--check", tmp_path)

    assert done.returncode == 1
    assert why in done.stderr


def test_a_folder_without_headers_is_refused(tmp_path):
    done = symbols("--check", tmp_path)

    assert done.returncode == 1
    assert "no cuda.h" in done.stderr
