"""`make bundle`: Diapause, containerd, runc, CRIU and tests in one archive, for machines without registries.

The archive holds a folder that works in place, and anywhere it is moved before install.sh runs:

    install.sh   finds a Python from 3.11 on and writes the launchers; asks no network
    bin/         the C programs, and the launchers once installed
    site/        Python packages, for every Python that is supported
    components/  containerd, runc, CRIU, busybox
    tests/       integration tests, their workloads and the C tests
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = ROOT / "build" / "venv" / "bin"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
COMPONENTS = ("containerd-2.4", "runc-1.5", "criu", "busybox")
TEST_PACKAGES = ("pytest", "pytest-timeout")  # what integration tests need besides the package
LIMIT = 60 << 20  # bytes
_EPOCH = 1577836800  # one time for every file, so that equal contents make an equal archive


def main() -> int:
    (ROOT / "dist").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="bundle-") as folder:
        work = Path(folder)
        wheel = own_wheel(work / "wheels")
        name = f"diapause-bundle-{wheel.name.split('-')[1]}-{platform.machine()}"
        fill(work / name, wheel, work / "wheels")
        say(f"packing {sum(path.stat().st_size for path in (work / name).rglob('*')) >> 20} MiB")
        archive = work / f"{name}.tar.xz"
        pack(work / name, archive)
        check(archive)
        archive = archive.rename(ROOT / "dist" / archive.name)
    size = archive.stat().st_size
    if size > LIMIT:
        say(f"bundle: {archive} has {size >> 20} MiB, more than {LIMIT >> 20}")
        return 1
    say(f"{size / (1 << 20):.1f} MiB")
    print(f"Wrote {archive.relative_to(ROOT)}")
    return 0


def fill(into: Path, wheel: Path, wheels: Path) -> None:
    site, tests = into / "site", into / "tests"
    install(wheel, site, into / "bin")
    for package in download(dependencies(), wheels / "runtime"):
        install(package, site)
    for package in download(TEST_PACKAGES, wheels / "tests"):
        install(package, tests / "site")
    for component in COMPONENTS:
        say(f"adding {component}")
        copy_component(component_path(component), into / "components" / component)
    ignore = shutil.ignore_patterns("__pycache__", "toolbox", "*.o")
    shutil.copytree(ROOT / "integration", tests / "integration", ignore=ignore)
    shutil.copytree(ROOT / "build" / "workloads", tests / "workloads")
    native_tests = ROOT / "build" / "editable" / "diapause" / "native" / "tests"
    if native_tests.is_dir():
        shutil.copytree(native_tests, tests / "native", ignore=ignore)
    for name in ("install.sh", "README", "run-tests.sh"):
        shutil.copy2(HERE / "bundle" / name, into / name)
    for name in ("LICENSE", "configs/config.toml"):
        shutil.copy2(ROOT / name, into / Path(name).name)


def own_wheel(into: Path) -> Path:
    say("building the wheel")
    run(BIN / "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", into, ROOT)
    (wheel,) = into.glob("diapause-*.whl")
    return wheel


def dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [str(requirement) for requirement in project["dependencies"]]


def download(requirements: Iterable[str], into: Path) -> list[Path]:
    """Wheels for every supported Python; files of compiled ones have the version in their names."""
    say(f"getting {', '.join(requirement.split()[0] for requirement in requirements)}")
    machine = platform.machine()
    platforms = [f"--platform=manylinux_{glibc}_{machine}" for glibc in ("2_17", "2_28")]
    for version in PYTHONS:
        options = ["--only-binary=:all:", f"--python-version={version}", *platforms]
        run(BIN / "pip", "download", "-q", *options, "-d", into, *requirements)
    return sorted(into.glob("*.whl"))


def install(wheel: Path, site: Path, scripts: Path | None = None) -> None:
    """Unpack a wheel; its programs go to `scripts`, its console scripts nowhere (install.sh writes ours)."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = member.filename
            if member.is_dir():
                continue
            head, _, rest = name.partition("/")
            target = site / name
            if head.endswith(".data"):
                kind, _, rest = rest.partition("/")
                if kind == "scripts" and scripts is None:
                    continue
                target = (scripts or site) / rest if kind == "scripts" else site / rest
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))
            target.chmod(0o755 if (member.external_attr >> 16) & 0o111 else 0o644)


def component_path(name: str) -> Path:
    done = subprocess.run(
        [sys.executable, HERE / "toolbox.py", "path", name], check=True, stdout=subprocess.PIPE, text=True
    )
    return Path(done.stdout.strip())


def copy_component(source: Path, target: Path) -> None:
    """Programs and what they need; links become files, documentation stays behind."""
    for folder in ("bin", "lib", "libexec"):
        if (source / folder).is_dir():
            shutil.copytree(source / folder, target / folder)


def pack(folder: Path, archive: Path) -> None:
    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = _EPOCH
        return info

    with tarfile.open(archive, "w:xz", preset=6) as tar:
        tar.add(folder, folder.name, filter=plain)  # sorted by name: tarfile does that


def check(archive: Path) -> None:
    """Read all of it back. Raises lzma.LZMAError or tarfile.TarError."""
    with tarfile.open(archive, "r|xz") as tar:
        names = [member.name for member in tar]
    assert any(name.endswith("/install.sh") for name in names), f"{archive} ends too early"


def run(*argv: str | Path) -> None:
    subprocess.run(argv, check=True, cwd=ROOT, stdin=subprocess.DEVNULL)


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
