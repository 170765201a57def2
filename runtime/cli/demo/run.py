"""The demo: run, checkpoint, delete, restore, and see that the count went on."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from diapause.runtime.cli.demo import image
from diapause.runtime.cli.demo.containerd import Containerd
from diapause.runtime.cli.demo.counter import Counter, compare
from diapause.runtime.cli.demo.programs import Programs
from diapause.runtime.cli.demo.story import Story
from diapause.runtime.errors import DiapauseError, FailedPrecondition, Internal
from diapause.runtime.native import require
from diapause.runtime.version import __version__

_STEPS = 10  # before the checkpoint, and after the restore
_MIB = 16  # of device memory
_ARGUMENTS = ["--mib", str(_MIB), "--interval", "20", "--output", "/out/log"]
_CONTAINER = "counter"
_SNAPSHOT = "localhost/counter:snapshot"


def run(story: Story, say: Callable[[str], None], *, keep: bool) -> None:
    """Tell the story to its end. Raises DiapauseError; whatever happens, nothing is left running."""
    if os.geteuid() != 0:
        raise FailedPrecondition(
            "root-needed", "demo", "starting containers needs root", "run it with sudo, or as root"
        )
    with story.phase("get"):
        programs = Programs.find(say)
    with ExitStack() as stack:
        base = stack.enter_context(_folder(keep=keep))
        node = Containerd(base, programs, _environment(base, programs))
        stack.callback(node.close)
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)  # cleaning up is not interrupted
        with story.phase("prepare"):
            software = _gpu(base, programs, node.env)
            counter = Path(require("bin", "diapause-counter"))
            image.write(base / "image.tar", programs["busybox"], counter, _ARGUMENTS)
            node.start()
            node.ctr("image", "import", str(base / "image.tar"))
        _prologue(story, programs, software=software)
        _act(story, node)
        _epilogue(story)
    if keep:
        story.more(f"Logs and configuration: {base}")


def _act(story: Story, node: Containerd) -> None:
    container = _Container(node)
    with story.phase("run"):
        command = container.run()
    counter = container.counter()
    before = counter.wait(_STEPS)[-1]
    story.tell("run", f"a container counts in {_MIB} MiB of device memory: {before}", command)

    with story.phase("checkpoint"):
        command = container.checkpoint()
    original = counter.wait(len(counter.steps()) + _STEPS)
    story.tell("checkpoint", f"taken while it ran; by now it is at step {original[-1].number}", command)

    with story.phase("delete"):
        commands = container.delete()
    story.tell("delete", f"process {counter.pid} killed, container removed", *commands)

    with story.phase("restore"):
        command = container.restore()
    back = container.counter()
    restored = back.wait(original[-1].number - before.number + _STEPS)
    again = compare(original, restored)
    first, last = restored[0].number, restored[-1]
    story.tell("restore", f"process {back.pid} goes on from the checkpoint, with step {first}", command)
    story.tell("verified", f"steps {first} to {last.number}, none missing; the {again} that were made twice")
    story.more(f"have the same checksums of device memory; now at {last}")


class _Container:
    """The counter's container. Each method does one thing with ctr and returns the command line to show."""

    def __init__(self, node: Containerd) -> None:
        self._node = node
        self._out = node.base / "out"
        self._out.mkdir()
        self._log = self._out / "log"
        self._ended = 0  # bytes of the log that are the original's

    def run(self) -> Sequence[str]:
        options = ["--runc-binary", "diapause-runc", "--annotation", "diapause.dev/gpu-enabled=true"]
        mount = f"type=bind,src={self._out},dst=/out,options=rbind:rw"
        return self._ctr("run", "--detach", *options, "--mount", mount, image.NAME, _CONTAINER)

    def checkpoint(self) -> Sequence[str]:
        return self._ctr("containers", "checkpoint", "--task", _CONTAINER, _SNAPSHOT)

    def delete(self) -> list[Sequence[str]]:
        return [self._ctr("tasks", "rm", "--force", _CONTAINER), self._ctr("containers", "rm", _CONTAINER)]

    def restore(self) -> Sequence[str]:
        self._ended = self._log.stat().st_size
        return self._ctr("containers", "restore", "--live", _CONTAINER, _SNAPSHOT)

    def counter(self) -> Counter:
        """The process that runs in it now; only what it writes itself."""
        for line in self._node.ctr("tasks", "ls").splitlines():
            name, pid, *_ = [*line.split(), "", ""]
            if name == _CONTAINER:
                return Counter(int(pid), self._log, self._ended)
        raise Internal("counter-stopped", "demo: counter", "containerd has no task of that name")

    def _ctr(self, *args: str) -> Sequence[str]:
        self._node.ctr(*args)
        return ["ctr", *args]


def _gpu(base: Path, programs: Programs, env: Mapping[str, str]) -> bool:
    """Describe this node's GPU for the containers of this run; True if it is the software GPU."""
    software = not os.path.exists("/dev/nvidiactl")
    argv = [str(programs["diapause"]), "cdi", "generate", "--output", str(base / "cdi/gpu.json")]
    done = subprocess.run(argv, check=False, env=dict(env), capture_output=True, text=True)
    if done.returncode:
        raise Internal("demo-failed", "demo: cdi generate", done.stderr.strip().rpartition("\n")[2])
    return software


def _prologue(story: Story, programs: Programs, *, software: bool) -> None:
    versions = ", ".join(f"{name} {programs.version(name)}" for name in ("containerd", "runc", "criu"))
    story.title(f"Diapause {__version__}: a GPU container, saved and brought back")
    story.tell("get", f"{versions}, from {programs.origin}; nothing was installed")
    if software:
        story.tell(
            "prepare", "a private containerd, and the software GPU, because this machine has no other:"
        )
        story.more("it computes on the CPU, so its times say nothing about a real one")
    else:
        story.tell("prepare", "a private containerd, and the NVIDIA GPU of this machine")


def _epilogue(story: Story) -> None:
    away = story.seconds["checkpoint"] + story.seconds["restore"]
    story.end(
        f"Saved and restored in {away:.2f} s; nothing is left running. What to try next:",
        "  diapause demo --keep     the same, and the logs stay",
        "  diapause cdi generate    this machine's GPU for your own containers (`ctr run --device`)",
        "  ctr run --runc-binary diapause-runc …   with your containerd; README.md has the other clients",
    )


def _environment(base: Path, programs: Programs) -> dict[str, str]:
    """Diapause as it is configured for this run alone."""
    config = base / "diapause.toml"
    config.write_text("")
    return {
        "DIAPAUSE_CONFIG": str(config),
        "DIAPAUSE_RUN_DIR": str(base / "run"),
        "DIAPAUSE_STATE_DIR": str(base / "lib"),
        "DIAPAUSE_CDI_SPEC_DIRS": str(base / "cdi"),
        "DIAPAUSE_RUNTIME_RUNC": str(programs["runc"]),
        "DIAPAUSE_CRIU_PATH": str(programs["criu"]),
    }


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """A temporary folder with a short name, because of its sockets; kept on a failure, for its logs."""
    # Not mkdtemp: its names have underscores, which containerd takes in some places of a namespace only.
    base = Path(tempfile.gettempdir(), f"diapause-demo-{secrets.token_hex(4)}")
    base.mkdir(mode=0o700)
    try:
        yield base
    except DiapauseError as error:
        keep = True
        error.log = error.log or str(base)
        raise
    finally:
        for path in base.iterdir() if keep else ():
            if path.name in ("root", "state", "image.tar"):  # containerd's store: large, no use to a reader
                _remove(path)
        if not keep:
            _remove(base)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
