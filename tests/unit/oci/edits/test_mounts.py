import os
from pathlib import Path
from typing import Any

from diapause.runtime.oci.edits import mounts
from diapause.runtime.oci.spec import Spec


def bind(source: str | Path, destination: str, *options: str) -> dict[str, Any]:
    return {"destination": destination, "type": "bind", "source": str(source), "options": list(options)}


def test_a_source_behind_a_link_is_resolved(host: Path) -> None:
    (host / "real").mkdir()
    (host / "link").symlink_to("real")
    (host / "real" / "file").write_text("")
    spec = Spec(
        f"{host}/config.json",
        {"mounts": [bind(host / "link", "/a", "rbind"), bind("link/file", "/b", "bind")]},
    )

    mounts.resolve_sources(spec)

    assert [mount["source"] for mount in spec.mounts] == [f"{host}/real", f"{host}/real/file"]


def test_what_is_no_bind_or_not_there_stays(host: Path) -> None:
    before = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        bind(host / "missing", "/a", "rbind"),
        bind(host, "/b", "bind"),
    ]
    spec = Spec(f"{host}/config.json", {"mounts": [dict(mount) for mount in before]})

    mounts.resolve_sources(spec)

    assert spec.mounts == before


def test_a_recursive_bind_with_mounts_below_it_is_split(host: Path) -> None:
    (host / "usr/lib/driver").mkdir(parents=True)
    top = bind(host / "usr", "/usr", "rbind", "ro", "rnosuid", "rslave")
    data = {"mounts": [top, bind(host, "/x", "rbind")]}
    spec = Spec(f"{host}/config.json", data)
    points = ["/", f"{host}/usr", f"{host}/usr/lib/driver", f"{host}/usrlocal", f"{host}/usr/gone"]

    mounts.split_recursive(spec, points)

    assert spec.mounts == [
        bind(host / "usr", "/usr", "bind", "ro", "nosuid", "rslave"),
        bind(host / "usr/lib/driver", "/usr/lib/driver", "bind", "nosuid", "rslave"),
        bind(host, "/x", "bind"),
        bind(host / "usr", "/x/usr", "bind"),
        bind(host / "usr/lib/driver", "/x/usr/lib/driver", "bind"),
    ]


def test_splitting_again_changes_nothing(host: Path) -> None:
    (host / "a/b").mkdir(parents=True)
    spec = Spec(f"{host}/config.json", {"mounts": [bind(host / "a", "/a", "rbind")]})
    mounts.split_recursive(spec, [f"{host}/a/b"])
    once = [dict(mount) for mount in spec.mounts]
    mounts.split_recursive(spec, [f"{host}/a/b"])
    assert spec.mounts == once


def test_the_hosts_mount_points_are_paths() -> None:
    points = mounts.host_mount_points()
    assert "/" in points
    assert os.path.ismount("/proc") is ("/proc" in points)


def test_what_cannot_be_bound_is_no_mount_point_here(host: Path) -> None:
    (host / "mountinfo").write_text(
        "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/a rw\n"
        "2 1 0:5 / /a\\040b rw unbindable - tmpfs unbindable rw\n"
        "3 1 0:6 / /unbindable rw - tmpfs unbindable rw\n"
    )
    assert mounts.host_mount_points(str(host / "mountinfo")) == ["/", "/unbindable"]
