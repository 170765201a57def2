"""The way back of engine `intercept`: controllers load while CRIU restores, then the libraries attach."""

from __future__ import annotations

from diapause.runtime.engine.exchange import Exchange
from diapause.runtime.engine.steps.attach import Attach
from diapause.runtime.engine.steps.fetch import Fetch
from diapause.runtime.store.gpu_data import GpuData
from diapause.runtime.store.local import Local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.request import RestoreRequest
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.store.snapshot import Snapshot


class TakeBack:
    """What a restore by the libraries needs; owns the exchange and the data."""

    def __init__(
        self, subject: Subject, request: RestoreRequest, container: str, libcuda: str, snapshot: Snapshot
    ) -> None:
        """Raises NotFound when the data is not on this host."""
        self._data: GpuData | None = None
        digest = ""
        if stated := snapshot.document.gpu_data:  # processes may have had no memory at all
            self._data = GpuData.open(snapshot, Local.of(request.settings))
            digest = stated["index"]
        self._exchange = Exchange(subject, container, libcuda)
        self.fetch = Fetch(subject, self._exchange, self._data, digest)
        self.attach = Attach(subject, self._exchange)

    def close(self) -> None:
        self._exchange.close()
        if self._data is not None:
            self._data.close()
