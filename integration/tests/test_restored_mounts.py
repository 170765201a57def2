"""What a container cannot do through its mounts before a dump, it cannot do after a restore either."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.workloads import COUNTER, CPU

RESTRICTIONS = {"ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow"}
TWICE = {
    "plain": ["bind", "ro", "nosuid", "nodev"],
    "more": ["rbind", "ro", "noexec", "noatime", "nosuid", "nodev"],
}


def restrictions(container: Bundle) -> dict[str, set[str]]:
    """Of every mount, by its place; what lies over it counts. /dev/null over a file is no restriction."""
    found = {}
    for line in Path(f"/proc/{container.pid()}/mountinfo").read_text().splitlines():
        _, _, _, root, place, options, *_ = line.split()
        if root not in ("/null", "/dev/null"):
            found[place] = RESTRICTIONS & set(options.split(","))
    return found


def add(container: Bundle, *mounts: tuple[str, Path, Sequence[str]], **linux: object) -> None:
    """More mounts (place, source, options) and linux entries in the container's specification."""
    spec = container.spec
    assert isinstance(spec["mounts"], list)
    spec["mounts"] = spec["mounts"] + [
        {"destination": place, "type": "bind", "source": str(source), "options": list(options)}
        for place, source, options in mounts
    ]
    assert isinstance(spec["linux"], dict)
    spec["linux"].update(linux)
    container.write_spec()


def writable(container: Bundle, place: str) -> bool:
    return os.access(f"/proc/{container.pid()}/root{place}", os.W_OK)  # as root only a mount is an obstacle


def again(container: Bundle, image: Path) -> None:
    container.checkpoint(image)
    container.restore(image)
    container.goes_on()


def test_our_library_stays_read_only_at_every_place(runtime: Runtime, tmp_path: Path) -> None:
    container = runtime.bundle(*COUNTER).run()
    container.output.wait_step(3)
    before = restrictions(container)
    places = [place for place in before if re.search(r"/(libcuda|libnvidia-ml)\.so\.1$", place)]
    assert len(places) >= 4
    for number in range(2):
        again(container, tmp_path / f"image{number}")

        assert restrictions(container) == before
        assert not [place for place in places if writable(container, place)]


@pytest.mark.parametrize("options", TWICE.values(), ids=TWICE)
def test_mounts_of_one_source_keep_what_each_was_given(
    runtime: Runtime, tmp_path: Path, options: list[str]
) -> None:
    source = tmp_path / "volume"
    (source / "inner").mkdir(parents=True)
    (source / "inner/file").write_text("x")
    container = runtime.bundle(*CPU)
    add(
        container,
        ("/one", source, options),
        ("/two", source, options),
        ("/inner", source / "inner", options),
        ("/file", source / "inner/file", options),
        ("/free", source, ["bind"]),
        ("/free2", source, ["bind"]),
    )
    container.run()
    container.output.wait_step(3)
    before = restrictions(container)
    again(container, tmp_path / "image")

    assert restrictions(container) == before
    assert not writable(container, "/two/inner/file")
    assert not writable(container, "/file")
    assert writable(container, "/free2/inner/file")


def test_the_root_and_the_kernels_files_stay_as_they_were(runtime: Runtime, tmp_path: Path) -> None:
    container = runtime.bundle(*COUNTER)
    root = container.spec["root"]
    assert isinstance(root, dict)
    root["readonly"] = True
    add(
        container,
        readonlyPaths=["/proc/sys", "/proc/bus", "/proc/sysrq-trigger", "/proc/none"],
        maskedPaths=["/proc/acpi", "/proc/scsi", "/proc/kcore", "/proc/keys", "/proc/none"],
    )
    container.run()
    container.output.wait_step(3)
    before = restrictions(container)
    assert "ro" in before["/"] & before["/proc/sys"] & before["/proc/acpi"]
    again(container, tmp_path / "image")

    assert restrictions(container) == before


def test_a_mount_below_a_link_of_the_image_is_found(runtime: Runtime, tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_text("x")
    container = runtime.bundle(*CPU)
    (container.path / "rootfs/var").mkdir(exist_ok=True)
    (container.path / "rootfs/var/link").symlink_to("/out")
    add(container, ("/out/a", source, ["bind", "ro"]), ("/var/link/b", source, ["bind", "ro"]))
    container.run()
    container.output.wait_step(3)
    again(container, tmp_path / "image")

    assert restrictions(container)["/out/b"] >= {"ro"}
    assert not writable(container, "/out/b")


def test_a_file_open_for_writing_below_a_mount_that_has_to_be_read_only(
    runtime: Runtime, tmp_path: Path
) -> None:
    """A new specification that is stricter than the old one: refused, with nothing left."""
    source = tmp_path / "volume"
    source.mkdir()
    before = runtime.footprint()
    script = f"exec 9>>/data/log; exec {' '.join(CPU)}"
    container = runtime.bundle("/bin/sh", "-c", script)
    add(container, ("/data", source, ["bind"]), ("/twin", source, ["bind"]))
    container.run()
    container.output.wait_step(3)
    container.checkpoint(tmp_path / "image")
    mounts = container.spec["mounts"]
    assert isinstance(mounts, list)
    for mount in mounts:
        if mount["destination"] == "/data":
            mount["options"] = ["bind", "ro"]

    with pytest.raises(RuncError, match=r"/data of the container is mounted without ro.*\[mount-flags\]"):
        container.restore(tmp_path / "image")

    assert container.state() == {}
    assert runtime.footprint() == before
