"""The last look at free space: now the processes hold what was on the GPU."""

from __future__ import annotations

from diapause.runtime.engine import preflight
from diapause.runtime.linux import freezer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diapause.runtime.engine.request import Request
    from diapause.runtime.engine.subject import Subject


class Space:
    """undo: nothing, it only looks."""

    name = "space"

    def __init__(self, subject: Subject, request: Request) -> None:
        self._subject = subject
        self._request = request

    def describe(self) -> str:
        return f"check the free space of {self._request.image_path}"

    def execute(self) -> None:
        preflight.space(self._request, freezer.processes(self._subject.freezer.path), self._subject.what)

    def undo(self) -> None:
        pass
