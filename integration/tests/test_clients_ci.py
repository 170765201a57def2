"""The fixture that other projects copy, in a project of its own."""

import os
import subprocess
import sys
from pathlib import Path

from integration.harness import image, workloads
from integration.harness.tools import ROOT, install, toolset

TEST = """\
import re

def test_a_program_survives(gpu_node):
    gpu_node.load("{archive}", "docker.io/library/mine:1")
    container = gpu_node.run("docker.io/library/mine:1", "/opt/counter", "--interval", "20")
    container.wait_line("^step 5 ")
    snapshot = container.checkpoint()
    container.remove()
    before = int(re.findall(r"^step (\\d+)", container.logs(), re.M)[-1])

    restored = gpu_node.restore(snapshot)

    restored.wait_line(f"^step {{before + 5}} ")
    assert restored.status() == "RUNNING"
"""


def test_the_fixture_in_a_project_of_its_own(tmp_path: Path) -> None:
    archive = tmp_path / "mine.tar"
    image.archive(archive, "docker.io/library/mine:1", workloads.layer(toolset("debian")))
    (tmp_path / "diapause_gpu.py").write_text((ROOT / "configs/ci/diapause_gpu.py").read_text())
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["diapause_gpu"]\n')
    (tmp_path / "test_mine.py").write_text(TEST.format(archive=archive))
    temporary = set(Path("/tmp").glob("gpu-*"))

    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    env = {**os.environ, "DIAPAUSE_BIN": str(install().bin)}
    done = subprocess.run(
        argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110, check=False
    )

    assert "1 passed" in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]
    assert "/tmp/gpu-" not in Path("/proc/self/mountinfo").read_text()
    assert set(Path("/tmp").glob("gpu-*")) == temporary
