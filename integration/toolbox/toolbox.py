#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real containerd, runc and CRIU for tests: toolbox.py get NAME… | list | path NAME.

The package does the work (`diapause components`); this adds the components that only tests need, and
makes the environment first if there is none.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[1] / "build" / "venv"


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in ("get", "list", "path"):
        print(__doc__, file=sys.stderr)
        return 2
    command = ENVIRONMENT / "bin" / "diapause"
    if not command.exists() and (code := subprocess.call(["sh", str(HERE / "bootstrap.sh")])):
        return code
    verb, *names = arguments
    return subprocess.call([command, "components", verb, "--manifest", HERE / "toolbox.toml", *names])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
