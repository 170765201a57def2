"""The same command lines through runc and through diapause-runc: same output, same status.

Whoever calls a low-level runtime parses what it prints (the shim, conmon, podman, docker's probe), so this
compares the two programs in one run rather than either of them with a text written down here.
"""

import fcntl
import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from integration.harness import tools, workloads
from integration.harness.bundle import Bundle, Runtime
from integration.harness.wait import until

Outcome = tuple[int, str, str]


class Pair:
    """Plain runc and diapause-runc, each with a root of its own and one running container called `c`."""

    def __init__(self, ours: Runtime, theirs: Runtime) -> None:
        self.runtimes = (ours, theirs)
        self.containers: list[Bundle] = []

    def start(self, *workload: str) -> None:
        for runtime in self.runtimes:
            bundle = runtime.bundle(*workload, engine="")
            bundle.id = "c"
            self.containers.append(bundle.run())

    def outcomes(self, *args: str, root: bool = True) -> tuple[Outcome, Outcome]:
        """What both say to `args`, without the values that differ from run to run."""
        return self._outcome(0, args, root), self._outcome(1, args, root)

    def _outcome(self, number: int, args: Sequence[str], root: bool) -> Outcome:
        runtime = self.runtimes[number]
        words = [
            a.replace("BUNDLE", str(self.containers[number].path) if self.containers else "/") for a in args
        ]
        argv = [str(runtime.program), *(["--root", str(runtime.root)] if root else []), *words]
        done = subprocess.run(
            argv, capture_output=True, text=True, env=runtime.env, timeout=30, check=False, cwd=runtime.base,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, self._plain(number, done.stdout), self._plain(number, done.stderr)

    def _plain(self, number: int, text: str) -> str:
        runtime = self.runtimes[number]
        text = text.replace(str(self.runtimes[1].program), "runc")  # runc prints the name it was started by
        for value, word in (
            (str(runtime.program), "runc"),
            (str(runtime.base), "BASE"),
            (self.containers[number].path.name if self.containers else "\0", "NAME"),
        ):
            text = text.replace(value, word)
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\S\d\d:\d\d)", "TIME", text)
        text = re.sub(r"\bdiapause-runc\b", "runc", text)
        return re.sub(r" +", " ", re.sub(r"\b\d{3,}\b", "N", text))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both with a container that counts."""
    current = tools.toolset("current")
    ours = Runtime(tmp_path_factory.mktemp("ours"), current)
    theirs = Runtime(tmp_path_factory.mktemp("theirs"), current, program=current.find("runc"))
    made = Pair(ours, theirs)
    made.start(*workloads.CPU)
    for bundle in made.containers:
        bundle.output.wait_step(1)
    yield made
    ours.clean()
    theirs.clean()


READING = """\
--help
-h
help
--version
-v
version
bogus
--bogus
--bogus state c
state
state c
state nobody
-state c
--log-format=json state c
-log-format json state c
--log-format xml state c
--debug state nobody
--systemd-cgroup=false state c
--rootless=false state c
list
list -q
list -f json
list --format=bogus
ps c -o comm
ps --format json c
ps -f table c -o comm
ps --format=json nobody
ps nobody
features
spec --help
checkpoint --help
restore --help
create --help
run -h
exec --help
delete --help
create
create --bundle
create x y z
create --no-such-flag x
create --bundle /nonexistent x
create -b /nonexistent x
create -bundle=/nonexistent x
run --bundle /nonexistent x
start
start nobody
start c
kill
kill nobody 9
kill c NOSUCHSIGNAL
delete
delete nobody
delete -f nobody
delete -force nobody
delete c
pause nobody
resume nobody
resume c
exec nobody true
exec c
exec c /bin/false
exec c /bin/echo hello
exec -cwd /opt c ls
exec --env A=b c /bin/sh -c 'echo $A; exit 7'
exec c /nonexistent
update nobody
events --stats nobody
checkpoint
checkpoint nobody
checkpoint --image-path /nonexistent/x nobody
checkpoint --no-such-flag c
checkpoint --manage-cgroups-mode bogus c
restore
restore nobody
restore --lsm-mount-context
restore --bundle /nonexistent --image-path /nonexistent x
restore --no-such-flag x
restore -no-subreaper --bundle /nonexistent --image-path /nonexistent x
restore --bundle BUNDLE --image-path /nonexistent c
""".splitlines()


@pytest.mark.parametrize("line", ["", *READING])
def test_a_command_line_says_the_same(pair: Pair, line: str) -> None:
    ours, theirs = pair.outcomes(*shlex.split(line))

    assert ours == theirs


@pytest.mark.parametrize(
    "line", ["state nobody", "restore nobody", "checkpoint nobody", "create --bundle /nonexistent x"]
)
def test_the_log_file_gets_the_same_records(pair: Pair, line: str, tmp_path: Path) -> None:
    logs = []
    for number, name in enumerate(("ours", "theirs")):
        file = tmp_path / name
        pair._outcome(number, ["--log", str(file), "--log-format", "json", *line.split()], True)
        logs.append([(r["level"], r["msg"]) for r in map(json.loads, file.read_text().splitlines())])

    assert logs[0] == logs[1]
    assert logs[0][-1][0] == "error"


def test_the_default_root_is_the_same(pair: Pair) -> None:
    ours, theirs = pair.outcomes("state", "nobody-of-that-name", root=False)

    assert ours == theirs


def _life(runtime: Runtime, id: str) -> list[object]:
    """A container's whole life by single verbs; what each step answered."""
    bundle = runtime.bundle("/bin/sh", "-c", "echo out; echo err >&2; exit 3", engine="")
    answers: list[object] = []

    def step(verb: str, *args: str, output: int = subprocess.PIPE) -> None:
        done = subprocess.run(
            runtime.argv(verb, *args, id, *(["0"] if verb == "kill" else [])), env=runtime.env, timeout=30,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False,
        )  # fmt: skip
        status = json.loads(done.stdout)["status"] if verb == "state" and done.stdout else ""
        answers.append((verb, done.returncode, status))

    read, write = os.pipe()
    with os.fdopen(read) as reader:
        step("create", "--bundle", str(bundle.path), "--pid-file", str(bundle.path / "pid"), output=write)
        os.close(write)
        answers.append((bundle.path / "pid").read_text().isdigit())
        step("state")
        step("start")
        answers.append(reader.read())
    until(lambda: '"stopped"' in runtime("state", id), "exit")
    for verb in ("kill", "delete", "state"):
        step(verb)
    return answers


def test_create_start_kill_delete_go_the_same_way(pair: Pair) -> None:
    ours, theirs = (_life(runtime, "life") for runtime in pair.runtimes)

    assert ours == theirs
    assert "out\nerr\n" in ours


def test_run_passes_the_containers_status_and_output_on(pair: Pair) -> None:
    results = []
    for runtime in pair.runtimes:
        bundle = runtime.bundle("/bin/sh", "-c", "echo out; echo err >&2; cat; exit 42", engine="")
        done = subprocess.run(
            runtime.argv("run", "-b", str(bundle.path), "r"),
            env=runtime.env,
            timeout=30,
            input=b"typed\n",
            capture_output=True,
            check=False,
        )
        results.append((done.returncode, done.stdout, done.stderr))

    assert results[0] == results[1] == (42, b"out\ntyped\n", b"err\n")


def _numbered(text: bytes) -> int:
    """A descriptor from which one line can be read, with a number that is in nobody's way."""
    reader, writer = os.pipe()
    os.write(writer, text)
    os.close(writer)
    high = fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(reader)
    return high


def test_preserved_and_listening_descriptors_reach_the_container(pair: Pair) -> None:
    results = []
    for runtime in pair.runtimes:
        bundle = runtime.bundle("/bin/sh", "-c", "echo $LISTEN_FDS; cat <&3; cat <&4; cat <&5", engine="")
        fds = [_numbered(text) for text in (b"three\n", b"four\n", b"five\n")]
        shell = f'export LISTEN_PID=$$; exec 3<&{fds[0]} 4<&{fds[1]} 5<&{fds[2]}; exec "$@"'
        run = runtime.argv("run", "--preserve-fds", "2", "-b", str(bundle.path), "f")
        done = subprocess.run(
            ["bash", "-c", shell, "bash", *run], env={**runtime.env, "LISTEN_FDS": "1"}, pass_fds=fds,
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        for fd in fds:
            os.close(fd)
        results.append((done.returncode, done.stdout, done.stderr))

    assert results[0] == results[1] == (0, "1\nthree\nfour\nfive\n", "")


def test_a_terminal_arrives_at_the_console_socket(pair: Pair) -> None:
    results = []
    for runtime in pair.runtimes:
        bundle = runtime.bundle("/bin/sh", "-c", "test -t 0 && echo terminal", engine="")
        process = bundle.spec["process"]
        assert isinstance(process, dict)
        process["terminal"] = True
        bundle.write_spec()
        path = bundle.path / "s"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            runtime("run", "-d", "--console-socket", str(path), "-b", str(bundle.path), "t")
            server.settimeout(20)
            connection, _ = server.accept()
            name, fds, _, _ = socket.recv_fds(connection, 4096, 1)
            connection.close()
        results.append((os.read(fds[0], 100), name[:9]))
        os.close(fds[0])
        runtime("delete", "-f", "t")

    assert results[0] == results[1] == (b"terminal\r\n", b"/dev/pts/")


def test_a_verb_without_work_is_one_process(pair: Pair) -> None:
    """The shim starts the runtime with PDEATHSIG: the process it started has to be runc, not its parent."""
    for runtime in pair.runtimes:
        bundle = runtime.bundle("/bin/sh", "-c", "while :; do sleep 0.01; done", engine="")
        started = subprocess.Popen(
            runtime.argv("run", "-b", str(bundle.path), "one"), env=runtime.env, stdin=subprocess.DEVNULL
        )
        until(lambda r=runtime: r("list", "-q").split().count("one"), "container")  # type: ignore[misc]
        program = os.readlink(f"/proc/{started.pid}/exe")
        runtime("kill", "one", "9")
        started.wait(20)
        assert program == str(pair.runtimes[1].program.resolve())
