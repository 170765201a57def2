"""The driver's checkpoint of what is left in the processes, while the gates keep everybody out of it."""

from __future__ import annotations

from diapause.runtime.engine.steps import evacuate


class Residue(evacuate.Evacuate):
    """As Evacuate, but no thread is held: closed gates do that. undo: the driver's restore."""

    name = "residue"

    def describe(self) -> str:
        return f"let the driver checkpoint the rest of {len(self._subject.gpu)} processes"

    def undo(self) -> None:
        evacuate.reload(self._subject)
