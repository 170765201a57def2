"""containerd's own client tests of checkpoint and restore, with a runtime in the place of runc."""

import lzma
import re
import subprocess
from pathlib import Path

from integration.conformance.registry import Registry
from integration.conformance.suite import rootfs
from integration.harness.tools import ROOT, Toolset

TESTS = "TestCheckpoint"


class Client:
    """The suite; it starts a containerd of its own in /run/containerd-test."""

    def __init__(self, component: Path, scratch: Path, tools: Toolset, stand_ins: Path) -> None:
        self._program = component / "bin/client.test"
        self._scratch = scratch
        self._tools = tools
        self._stand_ins = stand_ins
        self._layer = lzma.decompress(rootfs(tools.find("busybox")))

    def run(self, label: str, runc: Path, env: dict[str, str]) -> dict[str, str]:
        """Run the tests; return what became of each: ok, skip or not ok."""
        first = self._scratch / f"first-{label}"
        first.mkdir(exist_ok=True)
        link = first / "runc"
        link.unlink(missing_ok=True)
        link.symlink_to(runc.resolve())
        own = {
            "PATH": f"{first}:{self._stand_ins}:{self._tools.path}",
            "HOME": "/root",
            "TMPDIR": str(first),
            **env,
        }
        argv = [str(self._program), "-test.root", "-test.v", "-test.run", TESTS]
        with Registry(self._layer):
            done = subprocess.run(
                argv, env=own, cwd=first, check=False, timeout=600, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
        folder = ROOT / "build/conformance" / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "client.log").write_text(done.stdout)
        return parse(done.stdout)


def parse(output: str) -> dict[str, str]:
    words = {"PASS": "ok", "SKIP": "skip", "FAIL": "not ok"}
    return {
        f"client: {name}": words[word] for word, name in re.findall(r"--- (PASS|SKIP|FAIL): (\S+)", output)
    }
