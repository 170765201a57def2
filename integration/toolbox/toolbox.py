#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real containerd, runc and CRIU for tests.

toolbox.py get NAME…    get components, or all those of a set
toolbox.py list         every component
toolbox.py path NAME    where one is; for a set, its folders of programs as a PATH

The package does the work (`diapause components`); this adds the components that only tests need, and
makes the environment first if there is none.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[1] / "build" / "venv"
SETS = {  # what a test runs against
    "debian": ("debian-pair", "criu", "busybox"),
    "current": ("containerd-2.4", "runc-1.5", "criu", "busybox"),
}


def main(arguments: list[str]) -> int:
    match arguments:
        case ["get", *names] if names:
            components = dict.fromkeys(part for name in names for part in SETS.get(name, (name,)))
            return diapause("get", *components)
        case ["path", name] if name in SETS:
            return path_of(name)
        case ["path", _] | ["list"]:
            return diapause(*arguments)
    print(__doc__, file=sys.stderr)
    return 2


def path_of(name: str) -> int:
    """Print a set as a PATH; what is missing is got first."""
    done = subprocess.run(command("get", *SETS[name]), check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode == 0:
        print(":".join(f"{folder}/bin" for folder in done.stdout.splitlines()))
    return done.returncode


def diapause(verb: str, *names: str) -> int:
    return subprocess.call(command(verb, *names))


def command(verb: str, *names: str) -> list[str]:
    program = ENVIRONMENT / "bin" / "diapause"
    if not program.exists():
        subprocess.run(["sh", str(HERE / "bootstrap.sh")], check=True)
    return [str(program), "components", verb, "--manifest", str(HERE / "toolbox.toml"), *names]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
