"""`ctr` against a private containerd."""

import subprocess
from collections.abc import Mapping, Sequence

from integration.harness.daemon import Containerd


class CtrError(AssertionError):
    """`ctr` failed; the text is what its user saw on stderr."""

    def __init__(self, argv: Sequence[str], status: int, stderr: str) -> None:
        super().__init__(f"ctr {' '.join(argv)}: exit status {status}: {stderr}")
        self.status = status
        self.stderr = stderr


class Ctr:
    """Runs the `ctr` of the daemon's tool set, in the daemon's namespace."""

    def __init__(self, daemon: Containerd) -> None:
        self._daemon = daemon
        self._base = [str(daemon.tools.find("ctr")), "-a", str(daemon.address), "-n", daemon.namespace]
        if daemon.unified:  # the client mounts and unpacks: it has to see what the daemon sees
            self._base = ["nsenter", f"--mount=/proc/{daemon.pid}/ns/mnt", "--", *self._base]

    def argv(self, *args: str) -> list[str]:
        return [*self._base, *args]

    @property
    def env(self) -> Mapping[str, str]:
        return {"PATH": self._daemon.env["PATH"], "TMPDIR": str(self._daemon.temp), "LC_ALL": "C"}

    def __call__(self, *args: str, seconds: float = 60.0) -> str:
        """Run it; return stdout. Raises `CtrError` when it fails or takes longer than `seconds`."""
        try:
            done = subprocess.run(
                self.argv(*args),
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=seconds,
                env=self.env,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise CtrError(args, 124, f"no answer within {seconds:g} s: {late.stderr!r}") from late
        if done.returncode:
            raise CtrError(args, done.returncode, _without_notices(done.stderr))
        return done.stdout

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start it and return at once; the caller waits for it."""
        return subprocess.Popen(
            self.argv(*args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
        )


def _without_notices(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "DEPRECATION" not in line).strip()
