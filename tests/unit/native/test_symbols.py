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
    lines = re.findall(r"^(FORWARD|REPLACE)\((\w+)\)$", (CUDA / "symbols.def").read_text(), re.M)
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

    assert replaced == set(re.findall(r"^CUresult replaced_(\w+)\([^;]*?\)\s*\{", source, re.M))


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

    lacking = set(re.findall(r"lacks (?:FORWARD|REPLACE)\((\w+)\)", done.stdout))
    assert done.returncode == 1
    assert lacking == {"cuA", "cuA_v2", "cuB_v3", "cuB_v3_ptsz", "cuSplit", "cuC"}
    assert "should not have FORWARD(cuMemAlloc_v2)" in done.stdout


def test_a_folder_without_headers_is_refused(tmp_path):
    done = symbols("--check", tmp_path)

    assert done.returncode == 1
    assert "no cuda.h" in done.stderr
