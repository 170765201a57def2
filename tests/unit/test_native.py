from pathlib import Path

import pytest

from diapause.runtime import native
from diapause.runtime.errors import FailedPrecondition


def test_the_native_parts_lie_beside_the_packages() -> None:
    package = Path(native.__file__).parent.parent
    assert native.path("lib", "x.so") == str(package / "native" / "lib" / "x.so")


def test_a_missing_part_is_named() -> None:
    with pytest.raises(FailedPrecondition, match=r"lib/x\.so is missing"):
        native.require("lib", "x.so")
