import pytest

from diapause.runtime.linux.owned import Owned


class Thing:
    def __init__(self, name: str, closed: list[str]) -> None:
        self.name = name
        self.closed = closed

    def close(self) -> None:
        self.closed.append(self.name)


def test_what_is_owned_is_closed_in_reverse_once() -> None:
    closed: list[str] = []
    with Owned() as owned:
        assert owned.enter(Thing("first", closed)).name == "first"
        owned.callback(closed.append, "second")
        owned.close()
    assert closed == ["second", "first"]


def test_an_error_stops_no_other_from_being_closed() -> None:
    closed: list[str] = []

    def fail(text: str) -> None:
        raise ValueError(text)

    owned = Owned()
    owned.callback(fail, "late")
    owned.enter(Thing("middle", closed))
    owned.callback(fail, "early")
    with pytest.raises(ValueError, match="late") as caught:
        owned.close()
    assert closed == ["middle"]
    assert str(caught.value.__context__) == "early"
