"""The same program on the host, undisturbed and without our library: what a disturbed run has to print."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence

from integration.harness.output import Pipe
from integration.harness.wait import until

_VALUE = re.compile(r"^((?:step|check) \d+) (\S+)", re.M)


class Reference:
    """Owns the process: `close` it. It is started at once."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self._pipe = Pipe()
        self._process = subprocess.Popen(
            argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=self._pipe.writer, stderr=subprocess.STDOUT
        )
        self._pipe.handed_over()

    def compare(self, text: str, seconds: float) -> dict[str, object]:
        """Compare what a disturbed run printed with ours, waiting until we are as far.

        Returns the counts of what was compared. Raises AssertionError with the first difference.
        """
        theirs = values(text)
        last = max((int(key.split()[1]) for key in theirs), default=0)
        assert last, f"it printed no step: {text[-500:]!r}"
        until(self._reaches(last), f"step {last} of the undisturbed run", seconds=seconds)
        ours = values(self._pipe.output.text())
        for key in [key for key in theirs if key.startswith("check") and key not in ours]:
            del theirs[key]  # the one at its end, where we have not ended
        wrong = [key for key in theirs if ours.get(key) != theirs[key]]
        assert not wrong, (
            f"{len(wrong)} of {len(theirs)} values differ, the first {wrong[0]}: "
            f"{theirs[wrong[0]]}, undisturbed {ours.get(wrong[0])}"
        )
        steps = [key for key in theirs if key.startswith("step")]
        assert steps == [f"step {n}" for n in range(1, last + 1)], "steps are missing or printed twice"
        return {"steps": last, "checks": len(theirs) - len(steps), "identical": True}

    def _reaches(self, step: int) -> Callable[[], bool]:
        def reached() -> bool:
            text = self._pipe.output.text()
            ended = self._process.poll() is not None
            if ended and re.search(r"^ended after", text, re.M):
                return True
            assert not ended, f"the undisturbed run ended: {text[-800:]}"
            return self._pipe.output.step() > step  # one more: the check of the last step is there too

        return reached

    def text(self) -> str:
        return self._pipe.output.text()

    def wait_step(self, number: int, seconds: float) -> None:
        until(self._reaches(number), f"step {number} of the undisturbed run", seconds=seconds)

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


def values(text: str) -> dict[str, str]:
    """`step N` and `check N` with their values, from complete lines."""
    return dict(_VALUE.findall(text[: text.rfind("\n") + 1]))


def host_environment(libcuda_folder: str, more: Mapping[str, str]) -> dict[str, str]:
    """For a program on the host that is to find the driver of this machine."""
    return {**more, "LD_LIBRARY_PATH": libcuda_folder, "HOME": os.environ.get("HOME", "/tmp")}
