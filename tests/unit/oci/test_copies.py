import hashlib
import os
from pathlib import Path

import pytest

from diapause.runtime.errors import FailedPrecondition, Internal
from diapause.runtime.oci import copies


def library(native: Path) -> Path:
    return native / "lib" / "libdiapause-cuda.so"


def test_the_installed_library_is_copied_to_its_address(native: Path, host: Path) -> None:
    path, name = copies.current()
    digest = hashlib.sha256(library(native).read_bytes()).hexdigest()
    assert (path, name) == (f"{host}/state/lib/{digest}/libcuda.so.1", f"sha256:{digest}")
    assert copies.current() == (path, name)
    assert copies.find(name) == path


@pytest.mark.parametrize("umask", [0, 0o077])
def test_every_user_of_a_container_can_read_the_copy_and_nobody_else_its_folder(
    native: Path, host: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        path, _ = copies.current()
    finally:
        os.umask(before)

    assert Path(path).stat().st_mode & 0o777 == 0o555
    folders = [host / "state", host / "state/lib", Path(path).parent]
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700] * 3


@pytest.mark.parametrize("folder", ["state", "state/lib"])
def test_a_copy_is_not_believed_where_others_can_write(native: Path, host: Path, folder: str) -> None:
    _, name = copies.current()
    (host / folder).chmod(0o777)
    for look in (copies.current, lambda: copies.find(name)):
        with pytest.raises(FailedPrecondition, match="others can write there"):
            look()


def test_an_upgrade_leaves_earlier_copies(native: Path) -> None:
    path, name = copies.current()
    library(native).unlink()
    library(native).write_bytes(b"a newer version")
    assert copies.current()[1] != name
    assert copies.find(name) == path


def test_a_snapshots_library_may_be_the_installed_one(native: Path) -> None:
    digest = hashlib.sha256(library(native).read_bytes()).hexdigest()
    assert Path(copies.find(f"sha256:{digest}")).read_bytes() == library(native).read_bytes()


@pytest.mark.parametrize("name", ["", "sha256:", "sha256:" + "0" * 64, "sha256:../../x", "0" * 63])
def test_an_unknown_or_strange_digest_has_no_copy(native: Path, name: str) -> None:
    assert copies.find(name) == ""


def test_a_library_that_is_not_what_was_built_is_refused(native: Path) -> None:
    Path(f"{library(native)}.sha256").write_text(f"{'0' * 64}  libdiapause-cuda.so\n")
    with pytest.raises(Internal, match="install the package diapause again"):
        copies.current()


def test_an_installation_without_the_library_says_so(native: Path) -> None:
    library(native).unlink()
    with pytest.raises(FailedPrecondition, match=r"libdiapause-cuda\.so is missing"):
        copies.current()
