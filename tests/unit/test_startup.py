"""What the path of a runc verb may import: every module here is paid for at every container start."""

import subprocess
import sys
from typing import Any

import pytest

HEAVY = {
    "argparse", "asyncio", "click", "collections", "contextlib", "ctypes", "dataclasses", "enum", "functools",
    "hashlib", "importlib.metadata", "inspect", "json", "logging", "pathlib", "re", "shutil", "socket",
    "subprocess", "tempfile", "threading", "tomllib", "typing", "urllib", "yaml",
}  # fmt: skip

CREATE = """
import os, sys
before = set(sys.modules)
os.execve = lambda *_: sys.exit(0)
from diapause.runtime.oci.main import main
import atexit
atexit.register(lambda: print(*sorted(set(sys.modules) - before)))
main("/usr/bin/runc", ["--root", "/r", "create", "--bundle", sys.argv[1], "c1"], front="/bin/diapause-runc")
"""
REGISTER = """
import sys
before = set(sys.modules)
from diapause.hooks.main import main
print(*sorted(set(sys.modules) - before))
"""


ENGINE = """
import sys
before = set(sys.modules)
import diapause.runtime.engine.{}
print(*sorted(set(sys.modules) - before))
"""


def imported(program: str, *argv: str) -> set[str]:
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}", *argv]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert not output.stderr
    return set(output.stdout.split())


def test_a_managed_create_imports_nothing_that_takes_long(gpu_bundle: Any) -> None:
    for _ in range(2):  # the first ones hash and copy: later ones find it done
        imported(CREATE, str(gpu_bundle.path))
        gpu_bundle.config.write_bytes((gpu_bundle.path / "config.json.diapause-orig").read_bytes())

    found = imported(CREATE, str(gpu_bundle.path))

    assert "diapause.runtime.oci.managed" in found
    assert found & HEAVY == set()
    assert not any(name.startswith(("diapause.runtime.engine", "diapause.runtime.store")) for name in found)
    assert (gpu_bundle.spec["hooks"]["createRuntime"][0]["args"])[1] == "register"


def test_the_hook_imports_nothing_that_takes_long() -> None:
    found = imported(REGISTER)

    assert "diapause.hooks.register" in found
    assert found & HEAVY == set()


@pytest.mark.parametrize("operation", ["checkpoint", "restore"])
def test_the_engine_imports_little_that_takes_long(operation: str) -> None:
    found = imported(ENGINE.format(operation))

    assert f"diapause.runtime.engine.{operation}" in found
    assert found & HEAVY == {"ctypes"}


@pytest.mark.parametrize("module", ["hooks.main", "runtime.oci.main"])
def test_our_own_modules_stay_few(module: str) -> None:
    found = imported(
        f"import sys\nbefore = set(sys.modules)\nimport diapause.{module}\nprint(*set(sys.modules) - before)"
    )
    assert len([name for name in found if name.startswith("diapause")]) <= 24
