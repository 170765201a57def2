"""The way of engine `intercept`: closed gates hold the threads, controllers copy the memory."""

from __future__ import annotations

from diapause.runtime.engine import libraries, place, report
from diapause.runtime.engine.exchange import Exchange, Unsuited
from diapause.runtime.engine.steps.gate import Gate
from diapause.runtime.engine.steps.handover import HandOver
from diapause.runtime.engine.steps.lock import Lock
from diapause.runtime.engine.steps.quiesce import Quiesce, is_suited
from diapause.runtime.engine.steps.residue import Residue
from diapause.runtime.engine.steps.save import Save
from diapause.runtime.engine.steps.space import Space
from diapause.runtime.engine.steps.still import Still
from diapause.runtime.store import manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from diapause.runtime.engine.place import Place
    from diapause.runtime.engine.plan import Step
    from diapause.runtime.engine.processes import GpuProcess
    from diapause.runtime.engine.request import Request
    from diapause.runtime.engine.subject import Subject


def is_refused(subject: Subject, unsuited: Unsuited) -> bool:
    """Whether nothing else will do, or something could not be undone."""
    named = bool(subject.state.get("explicit", True))
    return (unsuited.for_good and named) or bool(getattr(unsuited, "__notes__", ()))


class Handover:
    """What a checkpoint by the libraries needs; owns the exchange."""

    def __init__(
        self,
        subject: Subject,
        request: Request,
        container: str,
        libcuda: str,
        choose: Callable[[int], Place] | None = None,
    ) -> None:
        """`choose` says where so many bytes go, by default what the configuration says."""
        self._choose = choose
        self._subject = subject
        self._request = request
        self._exchange = Exchange(subject, container, libcuda)
        self.save = Save(subject, self._exchange, request.image_path, self._place)

    def accepts(self, found: Sequence[GpuProcess]) -> bool:
        """Whether all processes can give their memory away, as far as it is known by now.

        Raises what the engine refuses that was asked for by name.
        """
        own = [process for process in found if process.holds_device or libraries.has_own(process)]
        if not own or not all(map(is_suited, own)):
            return False
        self._exchange.add(own)
        if self._subject.found_frozen:
            return True  # they can answer when they are thawed
        try:
            self._exchange.look()
        except Unsuited as unsuited:
            if is_refused(self._subject, unsuited):
                raise unsuited.error from None
            report.warning(self._request, f"{self._subject.what}: by the driver alone: {unsuited.error}")
            return False
        return True

    def steps(self, sync: bool) -> list[Step]:
        """Everything before the dump."""
        subject, exchange, request = self._subject, self._exchange, self._request
        self.save.sync = sync
        return [
            Gate(subject, exchange),
            Quiesce(subject, exchange),
            HandOver(subject, exchange),
            self.save,
            Lock(subject),
            Residue(subject),
            Still(subject, exchange),
            Space(subject, request),
        ]

    def _place(self, size: int) -> Place:
        return self._choose(size) if self._choose else place.choose(self._request, size)

    def finish(self) -> dict[str, Any] | None:
        """Wait for the copies; what the manifest says of them, None when there was no memory to copy."""
        phases = self._subject.phases
        start = phases.since_start()
        outcome = self.save.finish()
        if outcome is None or self.save.place is None:
            return None
        phases.add("copy", phases.since_start() - start)
        text = f"wait for the copy of GPU memory ({outcome.way}, {outcome.milliseconds} ms)"
        phases.tell("copy", text=text, size=outcome.written)
        where = self.save.place
        where.finish(outcome, allocations=self._exchange.count, sync=self.save.sync)
        return manifest.gpu_data_entry(
            placement=where.placement,
            name=where.name,
            host=where.host,
            bytes=outcome.bytes,
            zero=outcome.zero,
            allocations=self._exchange.count,
            index=outcome.index,
        )

    @property
    def gated(self) -> list[list[int]]:
        """Pid and start time of every process with closed gates."""
        return [[process.pid, process.start] for process in self._exchange.processes]

    @property
    def gpus(self) -> list[str]:
        return self._exchange.gpus

    def keep(self) -> None:
        """The snapshot counts: when the rest is undone it stays."""
        self._exchange.keep = True

    def forget(self) -> None:
        """The container has ended: nobody needs its memory."""
        self._exchange.forget()

    def close(self) -> None:
        if self.save.place is not None:
            self.save.place.close()
        self._exchange.close()
