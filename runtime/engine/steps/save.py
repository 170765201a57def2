"""The controllers copy what they hold into files, while the driver and CRIU do their part."""

from __future__ import annotations

from diapause.runtime.linux.deadline import Deadline
from diapause.runtime.store import placement, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from diapause.runtime.engine.exchange import Exchange
    from diapause.runtime.engine.place import Place
    from diapause.runtime.engine.subject import Subject
    from diapause.runtime.gpud.client import Outcome


class Save:
    """Starts the copy; finish() waits for it, and comes before the commit.

    undo: the controllers stop and let go, and the files are removed, unless they are to be kept.
    """

    name = "save"

    def __init__(
        self, subject: Subject, exchange: Exchange, image: str, place: Callable[[int], Place]
    ) -> None:
        """`place` says where so many bytes go; `image` is the snapshot's directory."""
        self._subject = subject
        self._exchange = exchange
        self._image = image
        self._choose = place
        self.sync = True  # the files outlive a crash of the machine
        self.place: Place | None = None
        self.outcome: Outcome | None = None

    def describe(self) -> str:
        where = self.place.path if self.place is not None else self._image
        return f"start to copy {self._exchange.bytes} bytes of GPU memory to {where}"

    def execute(self) -> None:
        snapshot.clear(self._image)
        self.place = place = self._choose(self._exchange.bytes)
        settings = self._subject.settings
        if place.placement == placement.LOCAL and settings.fsync != "never":
            self.sync = True  # nobody packs it: an image that a client has synced will refer to it
        self._subject.journal.note(
            stored=place.name, store_dir=settings.store_dir, memory_dir=settings.memory_dir
        )
        controllers = self._exchange.controllers
        for controller in controllers:
            deadline = Deadline.after(self._subject.settings.checkpoint_timeout)
            controller.save(controllers.container, place.directory, deadline, sync=self.sync)

    def finish(self) -> Outcome | None:
        """Wait for the end of the copy; None when there was nothing to copy. Raises what went wrong."""
        controllers = self._exchange.controllers
        deadline = Deadline.after(self._subject.settings.checkpoint_timeout)
        for controller in controllers:
            self.outcome = controller.wait(
                controllers.container, deadline, lambda *_: self._subject.watch.check()
            )
        self._exchange.compare(self.outcome.bytes if self.outcome is not None else 0)
        return self.outcome

    def undo(self) -> None:
        if self._exchange.keep:
            return
        self._exchange.forget()  # what it could not be told it notices by itself
        if self.place is not None:
            self.place.discard()
