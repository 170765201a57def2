"""The way back of engine `intercept`: controllers load while CRIU restores, then the libraries attach."""

from __future__ import annotations

from diapause.runtime.engine import place
from diapause.runtime.engine.exchange import Exchange
from diapause.runtime.engine.steps.attach import Attach
from diapause.runtime.engine.steps.fetch import Fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.request import RestoreRequest
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.store.snapshot import Snapshot


class TakeBack:
    """What a restore by the libraries needs; owns the exchange and the place of the data."""

    def __init__(
        self, subject: Subject, request: RestoreRequest, container: str, libcuda: str, snapshot: Snapshot
    ) -> None:
        """Raises NotFound when the data is not on this host."""
        self._exchange = Exchange(subject, container, libcuda)
        self._source = place.source(request, snapshot)
        self.fetch = Fetch(subject, self._exchange, self._source)
        self.attach = Attach(subject, self._exchange)

    def close(self) -> None:
        self._exchange.close()
        self._source.close()
