"""`diapause demo` as a person runs it: what it says, and what is left when it ends, however it ends."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import proc
from integration.harness.tools import install
from integration.harness.wait import until


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the demo makes its own folder; short, because sockets lie in it."""
    base = Path(tempfile.mkdtemp(prefix="dd-"))
    yield base
    shutil.rmtree(base, ignore_errors=True)


def demo(folder: Path, *args: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["env", "--default-signal=INT", install().cli, "demo", *args],  # a shell's background job ignores it
        env={**os.environ, "TMPDIR": str(folder), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left(folder: Path) -> list[str]:
    """What the demo would have to end or to remove, beside its folder."""
    running = [proc.cmdline(pid) for pid in proc.pids() if f"{folder}/" in proc.cmdline(pid)]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return running + [line for line in mounts if f"{folder}/" in line]


def cgroups(name: str) -> list[Path]:
    """Those of one run, which is called after its folder."""
    return [
        path
        for path in (Path("/sys/fs/cgroup", name), *Path("/sys/fs/cgroup").glob(f"*/{name}"))
        if path.exists()
    ]


def test_it_tells_the_story_and_leaves_nothing(folder: Path) -> None:
    process = demo(folder)
    story, errors = process.communicate(timeout=120)

    assert process.returncode == 0, errors
    phases = re.findall(r"^  (\w+) +\d+\.\d\d s  ", story, re.M)
    assert phases == ["get", "prepare", "run", "checkpoint", "delete", "restore"]
    assert re.search(
        r"^  verified +steps \d+ to \d+, none missing; the \d+ that were made twice$", story, re.M
    )
    assert "software GPU" in story or os.path.exists("/dev/nvidiactl")
    assert len(story.splitlines()) <= 30
    assert "\033" not in story
    assert not left(folder)
    assert not list(folder.iterdir())


def test_it_can_keep_the_logs(folder: Path) -> None:
    process = demo(folder, "--keep")
    story, errors = process.communicate(timeout=120)

    assert process.returncode == 0, errors
    kept = Path(re.findall(r"Logs and configuration: (\S+)", story)[0])
    assert (kept / "containerd.log").exists()
    assert not (kept / "root").exists()
    assert not left(folder)
    assert not cgroups(kept.name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_cleans_up_when_it_is_interrupted(folder: Path, number: signal.Signals) -> None:
    process = demo(folder)
    (log,) = until(lambda: list(folder.glob("*/out/log")), "output of the counter", seconds=60)
    name = log.parents[1].name
    assert cgroups(name)

    process.send_signal(number)
    process.communicate(timeout=60)

    assert process.returncode not in (0, -number)
    assert not left(folder)
    assert not cgroups(name)
    assert not list(folder.iterdir())


def test_a_failure_is_one_line_with_logs_that_exist(folder: Path, tmp_path: Path) -> None:
    native = tmp_path / "native"
    found = subprocess.run(
        [install().bin / "python3", "-c", "from diapause.runtime import native; print(native.path())"],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    shutil.copytree(found.stdout.strip(), native, ignore=shutil.ignore_patterns("obj", "tests", "workloads"))
    (native / "bin/diapause-counter").write_text("#!/bin/sh\necho step 1 sum aa >>/out/log\n")

    process = demo(folder, DIAPAUSE_NATIVE_DIR=str(native))
    _, errors = process.communicate(timeout=120)

    assert process.returncode == 1
    assert re.search(r"^diapause: demo: counter: .*\(log: (\S+)\) \[counter-stopped\]$", errors.strip())
    kept = Path(re.findall(r"log: (\S+)\)", errors)[0])
    assert (kept / "containerd.log").exists()
    assert not left(folder)
