"""Our cuda_abi.h and the software GPU's prototypes against NVIDIA's cuda.h, where that can be had."""

import os
import platform
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[3] / "native"
NAMED = os.environ.get("DIAPAUSE_CUDA_HEADERS")  # before a test clears the environment
TARGET = f"{platform.machine()}-linux-gnu.2.17"
CONTINUED = re.compile(r"CUDA_API\((cu\w+),\s*([^{;#]*?)\)\n\{", re.S)


@pytest.fixture(scope="module")
def headers() -> Path:
    """A folder with cuda.h: DIAPAUSE_CUDA_HEADERS, or nvidia-cuda-runtime beside pytest."""
    if NAMED and (Path(NAMED) / "cuda.h").exists():
        return Path(NAMED)
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    found = [path.parent for place in places or [] for path in Path(place).rglob("cuda.h")]
    if not found:
        pytest.skip("no cuda.h here: DIAPAUSE_CUDA_HEADERS is not set")
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    return found[0]


def compiler(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ziglang", "cc", "-target", TARGET, "-std=gnu11", "-D_GNU_SOURCE"]
    return subprocess.run(
        [*command, f"-I{NATIVE}/include", "-Wno-everything", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )


def against(headers: Path, source: Path, target: Path) -> str:
    """What the compiler says about a file that sees NVIDIA's header in the place of ours."""
    done = compiler("-DDIAPAUSE_CUDA_H", f"-I{headers}", "-c", source, "-o", target)
    return "" if done.returncode == 0 else done.stderr


def test_the_software_gpu_has_the_prototypes_of_the_driver(headers, tmp_path):
    texts = "".join(path.read_text() for path in sorted((NATIVE / "softgpu").glob("*.c")))
    functions = dict(CONTINUED.findall(texts))
    shape = re.search(r"#define SHAPE\s*\\\n(.*?)\n\n", texts, re.S)
    assert shape
    source = tmp_path / "prototypes.c"
    source.write_text(
        f"#include <cuda_abi.h>\n#define SHAPE {' '.join(shape[1].replace(chr(92), '').split())}\n"
        + "".join(f"CUresult {name}({' '.join(args.split())});\n" for name, args in functions.items())
    )

    assert len(functions) > 150
    assert against(headers, source, tmp_path / "prototypes.o") == ""
    for generated in ("copy", "set"):  # their functions come from macros
        assert against(headers, NATIVE / f"softgpu/{generated}.c", tmp_path / "out.o") == ""


def test_our_header_has_the_numbers_and_layouts_of_the_driver(headers, tmp_path):
    text = (NATIVE / "include/cuda_abi.h").read_text()
    numbers = re.findall(r"^\t(CU\w+) = \w+,$", text, re.M)
    structs = re.findall(r"typedef struct \w+ \{\n(.*?)\n\} (\w+);", text, re.S)
    lines = [f'printf("_Static_assert({n} == %d, \\"{n}\\");\\n", (int){n});' for n in numbers]
    for body, struct in structs:
        lines.append(f'printf("_Static_assert(sizeof({struct}) == %zu);\\n", sizeof({struct}));')
        for field in re.findall(r"(\w+)(?:\[[^;]*\])?;$", re.sub(r"\{.*?\}", "", body, flags=re.S), re.M):
            place = f"offsetof({struct}, {field})"
            lines.append(f'printf("_Static_assert({place} == %zu);\\n", {place});')
    ours, theirs = tmp_path / "ours.c", tmp_path / "theirs.c"
    ours.write_text("#include <stdio.h>\n#include <cuda_abi.h>\nint main(void) {" + "\n".join(lines) + "}")
    assert compiler(ours, "-o", tmp_path / "ours").returncode == 0
    printed = subprocess.run([tmp_path / "ours"], check=True, capture_output=True, text=True).stdout
    theirs.write_text("#include <stddef.h>\n#include <cuda_abi.h>\n" + printed)

    assert len(numbers) > 130
    assert len(structs) >= 12
    assert against(headers, theirs, tmp_path / "theirs.o") == ""


@pytest.mark.parametrize("table", ["demo/cuda_load.h", "tests/contract/api.h"])
def test_the_calls_of_a_table_have_the_prototypes_of_the_driver(headers, table, tmp_path):
    rows = re.findall(r"\bF\(\w+, (cu\w+),\s*([^()]*?)\)", (NATIVE / table).read_text().replace("\\\n", ""))
    source = tmp_path / "calls.c"
    source.write_text(
        "#include <cuda_abi.h>\n" + "".join(f"CUresult {name}({args});\n" for name, args in rows)
    )

    assert len(rows) > 25
    assert against(headers, source, tmp_path / "calls.o") == ""
