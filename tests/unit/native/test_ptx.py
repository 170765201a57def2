"""The kernels' PTX against NVIDIA's assembler where that can be had, and against the software GPU."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[3] / "native"
PTX = NATIVE / "demo/kernels.ptx"
HASH = NATIVE / "gpud/block_hash.ptx"
NAMED = os.environ.get("DIAPAUSE_PTXAS")  # before a test clears the environment


@pytest.fixture(scope="module")
def ptxas() -> Path:
    """DIAPAUSE_PTXAS, one in PATH, or that of nvidia-cuda-nvcc beside pytest."""
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    beside = [path for place in places or [] for path in Path(place).rglob("bin/ptxas")]
    found = NAMED or shutil.which("ptxas") or next(iter(beside), None)
    if not found:
        pytest.skip("no ptxas here: DIAPAUSE_PTXAS is not set")
    return Path(found)


def assemble(ptxas: Path, architecture: str, source: Path, target: Path) -> str:
    """What the assembler says about a file that it refuses or warns about."""
    done = subprocess.run(
        [ptxas, f"-arch={architecture}", "-Werror", "-o", target, source],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("source", [PTX, HASH], ids=lambda path: path.name)
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_the_kernels_assemble_for(architecture, source, ptxas, tmp_path):
    assert assemble(ptxas, architecture, source, tmp_path / "kernels.cubin") == ""


def test_a_wrong_kernel_does_not_assemble(ptxas, tmp_path):
    wrong = tmp_path / "wrong.ptx"
    wrong.write_text(PTX.read_text().replace("mad.wide.u32", "mad.wide.u64", 1))

    assert assemble(ptxas, "sm_75", wrong, tmp_path / "wrong.cubin") != ""


def test_the_software_gpu_has_the_kernels_with_their_parameters():
    text = PTX.read_text() + HASH.read_text()
    written = {
        name: parameters.count(".param .u64")
        for name, parameters in re.findall(r"\.entry (\w+)\(([^)]*)\)", text)
    }
    source = (NATIVE / "softgpu/kernels.c").read_text()
    built = {
        name: int(count) for name, count, _ in re.findall(r'\{ "(\w+)", (\d+), \{ (8(?:, 8)*) \}', source)
    }

    assert len(written) == text.count(".entry")
    assert built == written
