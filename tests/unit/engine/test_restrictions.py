"""What a container's mounts may not be used for, read from config.json."""

from collections.abc import Mapping

import pytest

from diapause.runtime.engine import restrictions
from diapause.runtime.linux import mounts


def of(config: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(one.path, mounts.describe(one.attributes)) for one in restrictions.of(config)]


@pytest.mark.parametrize(
    ("options", "attributes"),
    [
        ([], ""),
        (["bind", "rprivate", "relatime", "mode=755", "size=64k", "remount"], ""),
        (["rbind", "ro", "nosuid", "nodev", "noexec"], "ro,nosuid,nodev,noexec"),
        (["noatime", "nodiratime", "nosymfollow"], "noatime,nodiratime,nosymfollow"),
        (["rro", "rnosuid"], "ro,nosuid"),
        (["ro", "rw"], ""),
        (["rw", "ro"], "ro"),
        (["nosuid", "nodev", "noexec", "suid", "rdev", "exec"], ""),
        (["noatime", "strictatime"], ""),
        (None, ""),
    ],
)
def test_options_count_as_runc_reads_them(options: list[str] | None, attributes: str) -> None:
    assert mounts.describe(restrictions.options({"destination": "/d", "options": options})) == attributes


def test_every_part_of_the_configuration_counts() -> None:
    config = {
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [{"destination": "/a", "options": ["ro"]}, {"destination": "/b"}],
        "linux": {"readonlyPaths": ["/proc/sys"], "maskedPaths": ["/proc/kcore"]},
    }
    assert of(config) == [("/", "ro"), ("/a", "ro"), ("/b", ""), ("/proc/sys", "ro"), ("/proc/kcore", "ro")]
    assert [one.path for one in restrictions.of(config) if one.only_directory] == ["/proc/kcore"]


def test_a_configuration_without_them_restricts_nothing() -> None:
    assert of({}) == of({"root": None, "mounts": None, "linux": {"readonlyPaths": None}}) == []
