#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: T201
"""Write or check symbols.def: every function that a libcuda exports.

    symbols.py HEADERS            writes symbols.def
    symbols.py --check HEADERS    exits 1 and says what differs
    symbols.py --nm LIBCUDA       exits 1 and lists functions of that library that the table lacks

HEADERS is a directory with cuda.h, or the wheel nvidia-cuda-runtime of PyPI, which carries it.
"""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "symbols.def"
HEADERS = re.compile(r"(?:^|/)cuda(|GL|EGL|VDPAU|Profiler)(Typedefs)?\.h$")
TITLE = """\
/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function that a libcuda exports, written by symbols.py from the CUDA {version} headers and
 * extra.txt. REPLACE: the entry leads to replaced_NAME of ours; FORWARD: straight to the real one.
 */
"""

# Replaced in every variant that is known; a variant that is not here is refused (resolver.c).
REPLACED = {"cuInit", "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetProcAddress_v2_ptsz"}

DECLARED = re.compile(r"\bCUDAAPI\s+(cu\w+)\s*\(")
RENAMED = re.compile(r"#\s*define\s+cu\w+\s+(?:__CUDA_API_(PTDS|PTSZ)\s*\(\s*)?(cu\w+)")
POINTER = re.compile(r"\bCUDAAPI\s*\*\s*PFN_(cu\w+?)_v\d+(?:_pts[zd]|_ptds)?\)")
VERSION = re.compile(r"#define\s+CUDA_VERSION\s+(\d+)")


def headers(source: Path) -> Iterator[str]:
    """The text of every header that declares driver functions."""
    if source.is_dir():
        for path in sorted(source.rglob("*.h")):
            if HEADERS.search(str(path)):
                yield path.read_text(errors="replace")
        return
    with zipfile.ZipFile(source) as wheel:
        for name in sorted(wheel.namelist()):
            if HEADERS.search(name):
                yield wheel.read(name).decode(errors="replace")


def declared(text: str) -> set[str]:
    """The exported names that one header speaks of, per-thread variants included."""
    names = set(DECLARED.findall(text)) | set(POINTER.findall(text))
    for suffix, name in RENAMED.findall(text):
        names.add(name)
        if suffix:
            names.add(f"{name}_{suffix.lower()}")
    return names


def extra() -> set[str]:
    lines = (HERE / "extra.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def table(source: Path) -> str:
    """What symbols.def has to hold."""
    texts = list(headers(source))
    version = next((int(n) for text in texts for n in VERSION.findall(text)), 0)
    if not version:
        raise SystemExit(f"{source}: no cuda.h in there")
    names = set().union(extra(), *map(declared, texts))
    lines = (f"{'REPLACE' if name in REPLACED else 'FORWARD'}({name})\n" for name in sorted(names))
    return TITLE.format(version=f"{version // 1000}.{version % 1000 // 10}") + "".join(lines)


def listed() -> set[str]:
    return set(re.findall(r"^(?:FORWARD|REPLACE)\((\w+)\)$", TABLE.read_text(), re.M))


def lacking(library: str) -> list[str]:
    """Functions that `library` exports and the table does not know."""
    argv = ["nm", "-D", "--defined-only", library]
    output = subprocess.run(argv, check=True, text=True, capture_output=True).stdout
    rows = (line.split() for line in output.splitlines())
    names = {row[-1].split("@")[0] for row in rows if len(row) == 3 and row[1] in "TWi"}
    return sorted(name for name in names - listed() if name.startswith("cu"))


def main(argv: list[str]) -> int:
    flags, arguments = [a for a in argv if a.startswith("--")], [a for a in argv if not a.startswith("--")]
    if len(arguments) != 1 or flags not in ([], ["--check"], ["--nm"]):
        print(__doc__, file=sys.stderr)
        return 2
    if flags == ["--nm"]:
        missing = lacking(arguments[0])
        print("\n".join(missing) or f"all of them are among the {len(listed())} of the table")
        return 1 if missing else 0
    wanted = table(Path(arguments[0]))
    if not flags:
        TABLE.write_text(wanted)
        return 0
    have = TABLE.read_text()
    for line in sorted(set(wanted.splitlines()) ^ set(have.splitlines())):
        print(f"symbols.def {'lacks' if line in wanted else 'should not have'} {line}")
    return 0 if wanted == have else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
