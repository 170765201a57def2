"""Names inside a snapshot are flat and known."""

import pytest

from diapause.runtime.store import layout


@pytest.mark.parametrize("name", ["pages-1.img", "diapause-gpu-0.img", "descriptors.json", "a"])
def test_plain_names_are_flat(name: str) -> None:
    assert layout.is_flat(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "/etc/passwd", "a\0b", "-x", "ä", "x" * 256]
)
def test_anything_that_could_lead_elsewhere_is_not(name: str) -> None:
    assert not layout.is_flat(name)


def test_logs_and_the_manifest_are_no_part() -> None:
    assert layout.is_part("core-1.img")
    assert layout.is_part("descriptors.json")
    for name in ("diapause.json", "dump.log", "stats-dump", "config.dump", "readme.txt"):
        assert not layout.is_part(name)


@pytest.mark.parametrize(
    ("path", "temporary"),
    [
        ("/run/ctrd-checkpoint123", True),
        ("/tmp/ctd-checkpoint7/", True),
        ("/var/lib/x/ctrd-checkpoint99/inner", True),
        ("/var/lib/cri/containers/1/ctrd-checkpoint", False),
        ("/data/my-ctrd-checkpoint1", False),
        ("/data/snapshot", False),
    ],
)
def test_the_clients_temporary_directories_are_known(path: str, temporary: bool) -> None:
    assert layout.is_temporary(path) is temporary


def test_a_data_file_is_known_by_its_number() -> None:
    assert layout.gpu_data(12) == "diapause-gpu-12.img"
    assert layout.gpu_number("diapause-gpu-12.img") == 12
    for name in ("diapause-gpu-012.img", "diapause-gpu-.img", "diapause-gpu-1.img.img", "pages-1.img",
                 "diapause-gpu-².img", "diapause-gpu.idx", "1"):  # fmt: skip
        assert layout.gpu_number(name) is None
