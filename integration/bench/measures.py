"""What is measured: each function returns one result with its target."""

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from integration.bench.sample import Samples, alternate
from integration.harness.bundle import Bundle, Runtime
from integration.harness.node import IMAGE, Node
from integration.harness.tools import install


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A comparison of variants: plain runc first, ours last, between them what tells causes apart."""

    name: str
    unit: str  # "ms more" or "times"
    value: float
    target: float
    samples: Samples

    @property
    def met(self) -> bool:
        return self.value <= self.target


def more(name: str, samples: Samples, target: float) -> Result:
    """How many milliseconds ours, the last, takes more than the first, at the low percentile."""
    theirs, *_, ours = samples.values
    return Result(
        name=name,
        unit="ms more",
        value=samples.low(ours) - samples.low(theirs),
        target=target,
        samples=samples,
    )


def ratio(name: str, samples: Samples, target: float) -> Result:
    """How many times as long ours, the last, takes as the first, at the low percentile."""
    theirs, *_, ours = samples.values
    return Result(
        name=name,
        unit="times",
        value=samples.low(ours) / samples.low(theirs),
        target=target,
        samples=samples,
    )


def timed(argv: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=60)  # fmt: skip
    return (time.perf_counter() - start) * 1000


def pass_through(runtime: Runtime, rounds: int) -> Result:
    container = runtime.bundle("/opt/cpu", engine="").run()
    variants: dict[str, Callable[[], float]] = {}
    for label, program in (("runc", runtime.tools.find("runc")), ("diapause-runc", runtime.program)):
        argv = [str(program), "--root", str(runtime.root), "state", container.id]
        variants[label] = lambda argv=argv: timed(argv, runtime.env)  # type: ignore[misc]
    samples = alternate(variants, rounds)
    return more("pass-through verb (state)", samples, 2.0)


def _run(node: Node, runtime: Path, *annotations: str) -> Callable[[], float]:
    """`ctr run --rm` of a program that ends at once: create, start, exit, delete."""

    def once() -> float:
        words = [word for a in annotations for word in ("--annotation", a)]
        argv = node.ctr.argv(
            "run",
            "--rm",
            "--net-host",
            "--runc-binary",
            str(runtime),
            *words,
            IMAGE,
            node.name(),
            "/bin/true",
        )
        return timed(argv, dict(node.ctr.env))

    return once


def unmanaged(node: Node, rounds: int) -> Result:
    variants = {
        "runc": _run(node, node.daemon.tools.find("runc")),
        "diapause-runc": _run(node, install().runtime),
    }
    return ratio("unmanaged container through containerd", alternate(variants, rounds), 1.03)


def managed(node: Node, rounds: int) -> Result:
    variants = {
        "runc": _run(node, node.daemon.tools.find("runc")),
        "diapause-runc, managed": _run(
            node, install().runtime, "diapause.dev/gpu=driver", "diapause.dev/gpu-enabled=true"
        ),
    }
    return more("managed container through containerd", alternate(variants, rounds), 60.0)


class Turns:
    """A container that goes down and up; what the two ways took."""

    def __init__(self, container: Bundle, image: Path) -> None:
        self._container = container
        self._image = image
        container.run()
        container.output.wait_step(3)
        self._restore = 0.0

    def down(self) -> float:
        shutil.rmtree(self._image, ignore_errors=True)
        start = time.perf_counter()
        self._container.checkpoint(self._image)
        middle = time.perf_counter()
        self._container.restore(self._image)
        self._restore = (time.perf_counter() - middle) * 1000
        self._container.goes_on(by=2)
        return (middle - start) * 1000

    def up(self) -> float:
        """What the restore of the last `down` took."""
        return self._restore


def there_and_back(runtime: Runtime, plain: Runtime, rounds: int) -> tuple[Result, Result]:
    """The counter on the GPU against the same counter in host memory on plain runc.

    Between them the one in host memory, managed: what the wrapper costs without a driver.
    """
    options = ("--mib", "16", "--interval", "20")
    variants = {
        "runc, no GPU": Turns(plain.bundle("/opt/cpu", *options, engine=""), plain.base / "image"),
        "diapause-runc, no GPU": Turns(runtime.bundle("/opt/cpu", *options), runtime.base / "image-cpu"),
        "diapause-runc, GPU": Turns(runtime.bundle("/opt/counter", *options), runtime.base / "image"),
    }
    ups: dict[str, list[float]] = {label: [] for label in variants}

    def turn(label: str, turns: Turns) -> Callable[[], float]:
        def once() -> float:
            taken = turns.down()
            ups[label].append(turns.up())
            return taken

        return once

    downs = alternate({label: turn(label, t) for label, t in variants.items()}, rounds)
    return (
        ratio("checkpoint of the counter", downs, 1.5),
        ratio("restore of the counter", Samples({k: v[-rounds:] for k, v in ups.items()}), 1.5),
    )
