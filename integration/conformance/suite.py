"""runc's own bats suite, copied where it may write, with an image made of busybox."""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from integration.harness.tools import ROOT, Toolset

FILES = (
    "checkpoint", "create", "cwd", "debug", "delete", "env", "events", "exec", "help", "hooks", "kill",
    "list", "mounts", "no_pivot", "pause", "pidfd-socket", "ps", "rlimits", "root", "run", "spec", "start",
    "start_detached", "start_hello", "state", "timens", "tty", "umask", "update", "version",
)  # fmt: skip
SKIP = (("checkpoint", "--lazy-pages"),)  # hang on this kind of machine with plain runc too
_IMAGES = """\
#!/bin/sh
echo "BUSYBOX_IMAGE={image}"
echo "DEBIAN_IMAGE={image}"
echo "HELLO_IMAGE={image}"
"""


class Suite:
    """The suite in a scratch folder."""

    def __init__(self, component: Path, scratch: Path, tools: Toolset) -> None:
        self._prefix = component / "prefix"
        self.tests = scratch / "tests"
        self._tools = tools
        shutil.copytree(component / "suite", self.tests, symlinks=True)
        for name, wanted in SKIP:
            _skip(self.tests / f"integration/{name}.bats", wanted)
        image = scratch / "image.tar.xz"
        image.write_bytes(rootfs(tools.find("busybox")))
        self.stand_ins = scratch / "bin"
        self.stand_ins.mkdir()
        for program in ("iptables-restore", "ip6tables-restore"):  # CRIU locks the network by them
            if not shutil.which(program):
                stand_in = self.stand_ins / program
                stand_in.write_text("#!/bin/sh\nexit 0\n")
                stand_in.chmod(0o755)
        images = self.tests / "integration/get-images.sh"
        images.write_text(_IMAGES.format(image=image))
        images.chmod(0o755)

    def run(
        self, label: str, runc: Path, env: dict[str, str], *, files: tuple[str, ...] = FILES
    ) -> dict[str, str]:
        """Run it with a runtime; return what became of each test: ok, skip or not ok."""
        libraries = self._prefix / "usr/lib/x86_64-linux-gnu"
        own = {
            "PATH": f"{self.stand_ins}:{self._prefix}/usr/bin:{self._tools.path}",
            "LD_LIBRARY_PATH": str(libraries),
            "RUNC": str(runc), "HOME": "/root", "TERM": "xterm", "LC_ALL": "C.UTF-8", **env,
        }  # fmt: skip
        results: dict[str, str] = {}
        for name in files:
            file = self.tests / f"integration/{name}.bats"
            bats = f"{self._prefix}/usr/bin/bats -t {file}"
            try:  # with a terminal: some tests want one
                done = subprocess.run(
                    ["script", "-qec", bats, "/dev/null"], env=own, cwd=self.tests.parent, check=False,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900,
                )  # fmt: skip
                output = done.stdout.decode(errors="replace")
            except subprocess.TimeoutExpired as late:
                output = (late.stdout or b"").decode(errors="replace") + f"\nnot ok 0 {name} hangs\n"
            found = parse(output)
            results |= {f"{name}: {test}": result for test, result in found.items()}
            print(f"  {name:<18} {_counts(found)}", file=sys.stderr, flush=True)
            _log(label, name, output)
        return results


def _skip(file: Path, wanted: str) -> None:
    """Let the tests whose name contains `wanted` skip themselves."""
    pattern = re.compile(rf"^(@test .*{re.escape(wanted)}.*{{)$", re.M)
    file.write_text(pattern.sub(r"\1\n\tskip 'hangs'", file.read_text()))


def parse(tap: str) -> dict[str, str]:
    """Names and results of a TAP stream."""
    found = {}
    for line in tap.replace("\r", "").splitlines():
        match = re.match(r"(ok|not ok) \d+ (.*)", line)
        if match:
            name, _, directive = match[2].partition(" # ")
            found[name.strip()] = "skip" if directive.startswith("skip") else match[1]
    return found


def _counts(results: dict[str, str]) -> str:
    values = list(results.values())
    return ", ".join(f"{values.count(r)} {r}" for r in ("ok", "skip", "not ok") if r in values)


def _log(label: str, name: str, output: str) -> None:
    folder = ROOT / "build/conformance" / label
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.tap").write_text(output)


def rootfs(busybox: Path) -> bytes:
    """A root file system whose every command is busybox, as the suite's image is."""
    applets = subprocess.run([busybox, "--list-full"], check=True, capture_output=True, text=True, timeout=20)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=1) as tar:
        folders = [
            "bin",
            "sbin",
            "usr",
            "usr/bin",
            "usr/sbin",
            "dev",
            "etc",
            "home",
            "proc",
            "root",
            "sys",
            "tmp",
            "var",
        ]
        for folder in folders:
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(info)
        program = tarfile.TarInfo("bin/busybox")
        program.size, program.mode = busybox.stat().st_size, 0o755
        with busybox.open("rb") as source:
            tar.addfile(program, source)
        for path, text in (("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("etc/group", "root:x:0:\n")):
            info = tarfile.TarInfo(path)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
        for path in {
            p for p in applets.stdout.split() if p != "bin/busybox" and os.path.dirname(p) in folders
        }:
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, "/bin/busybox"
            tar.addfile(link)
    return buffer.getvalue()
