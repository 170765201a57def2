"""The demo: run, checkpoint, delete, restore, and see that the count went on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from diapause.runtime.cli.demo import image
from diapause.runtime.cli.demo.containerd import Containerd
from diapause.runtime.cli.demo.counter import LOG, Counter, Step
from diapause.runtime.cli.demo.programs import Programs
from diapause.runtime.cli.demo.story import Story
from diapause.runtime.errors import DiapauseError, FailedPrecondition, Internal
from diapause.runtime.native import require
from diapause.runtime.version import __version__

_STEPS = 10  # before the checkpoint, and after the restore
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
            image.write(base / "image.tar", programs["busybox"], Path(require("bin", "diapause-counter")))
            node.start()
            node.ctr("image", "import", str(base / "image.tar"))
        _prologue(story, programs, software=software)
        _act(story, node)
        _epilogue(story, software=software)
    if keep:
        story.more(f"Logs and configuration: {base}")


def _act(story: Story, node: Containerd) -> None:
    container = _Container(node)
    with story.phase("run"):
        command = container.run()
    counter = container.counter()
    before = counter.wait(lambda steps: len(steps) > _STEPS)
    story.tell("run", f"a container counts in the memory of its GPU: {before[-1]}", command)

    with story.phase("checkpoint"):
        command = container.checkpoint()
    later = counter.wait(lambda steps: steps[-1].number > before[-1].number + _STEPS)
    story.tell("checkpoint", f"taken; the container did not notice and is at {later[-1]}", command)

    with story.phase("delete"):
        commands = container.delete()
    story.tell("delete", f"process {counter.pid} killed, container removed", *commands)

    with story.phase("restore"):
        command = container.restore()
    back = container.counter()
    after = back.wait(lambda steps: len(steps) > len(later))
    story.tell("restore", f"process {back.pid} goes on from the moment of the checkpoint", command)
    story.tell("verified", f"every step up to {check(later, after)} was made once, and device memory held")
    story.more(f"the right checksum at each; now at {after[-1]}")


def check(original: list[Step], restored: list[Step]) -> int:
    """The last step of the restored container.

    Its output began before the checkpoint, and then it made the very steps that the original made before
    it was killed. Raises Internal if one is missing, was made twice, or has another checksum.
    """
    if restored[: len(original)] != original:
        wrong = next(pair for pair in zip(original, restored, strict=False) if pair[0] != pair[1])
        raise Internal("counter-wrong", "demo: counter", f"{wrong[1]} where the original had {wrong[0]}")
    numbers = [step.number for step in restored]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise Internal("counter-wrong", "demo: counter", f"the steps are not one sequence: {numbers[-30:]}")
    return numbers[-1]


class _Container:
    """The counter's container. Each method does one thing with ctr and returns the command line to show."""

    def __init__(self, node: Containerd) -> None:
        self._node = node

    def run(self) -> Sequence[str]:
        options = ["--runc-binary", "diapause-runc", "--annotation", "diapause.dev/gpu-enabled=true"]
        program = ["diapause-counter", "--interval", "20", "--output", LOG]
        return self._ctr("run", "--detach", *options, image.NAME, _CONTAINER, *program)

    def checkpoint(self) -> Sequence[str]:
        return self._ctr("containers", "checkpoint", "--task", "--rw", _CONTAINER, _SNAPSHOT)

    def delete(self) -> list[Sequence[str]]:
        return [self._ctr("tasks", "rm", "--force", _CONTAINER), self._ctr("containers", "rm", _CONTAINER)]

    def restore(self) -> Sequence[str]:
        return self._ctr("containers", "restore", "--live", "--rw", _CONTAINER, _SNAPSHOT)

    def counter(self) -> Counter:
        for line in self._node.ctr("tasks", "ls").splitlines():
            name, pid, *_ = [*line.split(), "", ""]
            if name == _CONTAINER:
                return Counter(int(pid))
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
    story.tell("get", f"{versions} from {programs.origin}; nothing was installed")
    gpu = "the GPU of this machine"
    if software:
        gpu = "no GPU here: the software GPU computes on the CPU, its times say nothing about a real one"
    story.tell("prepare", f"a private containerd, and {gpu}")


def _epilogue(story: Story, *, software: bool) -> None:
    away = story.seconds["checkpoint"] + story.seconds["restore"]
    story.end(
        f"Saved and restored in {away:.2f} s. Nothing is left running.",
        "Next: `diapause-runc` in the place of runc does this with the containers of your own containerd:",
        "README.md says how. `diapause demo --keep` leaves the logs of a run to look at.",
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
    base = Path(tempfile.mkdtemp(prefix="diapause-demo-"))
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
