"""What the documentation names exists: files, headings, keys, variables, commands, targets. And the tree
speaks of itself alone: of no machine that it was written on, and of no package index.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from diapause.runtime import config
from diapause.runtime.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
KEY = re.compile(r"`\[([a-z]+)\] ([a-z-]+)")
VARIABLE = re.compile(r"\bDIAPAUSE_[A-Z_]*[A-Z]\b")
CODE = re.compile(r"^ {4}(.*)$|`([^`\n]+)`", re.M)
COMMAND = re.compile(r"(?:^|[\s(/])diapause ([a-z][^|>&)\"]*)")
HOST = re.compile(r"https?://([a-zA-Z0-9.-]+)")

# Written in two parts, so that this file does not hold what it looks for.
MACHINE = [r"(?<![\w$}/.-])/wor" + r"k/", "/tmp/bui" + "ld", r"/tmp/p" + r"\d", "/home/" + r"\w+/"]
INDICES = [
    "pypi" + r"\.org",
    "python" + r"hosted\.org",
    "proxy" + r"\.golang",
    "deb" + r"\.debian",
    "pkg" + r"\.dev",
]
PRIVATE = [r"\b10" + r"\.\d+\.\d+\.\d+\b", r"\b192" + r"\.168\.\d", r"\b172" + r"\.(1[6-9]|2\d|3[01])\.\d"]
HOSTS = re.compile(
    r"(.*\.)?example(\.com)?|www\.apache\.org|keepachangelog\.com|semver\.org|localhost|127\.0\.0\.1"
)


@cache
def tracked() -> list[Path]:
    """The files of the tree; a source distribution has no list of them."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(argv, check=False, capture_output=True)
    if done.returncode:
        pytest.skip("no git repository")
    names = [ROOT / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in names if path.is_file() and not path.is_symlink()]


def pages() -> dict[Path, str]:
    folders = (ROOT, ROOT / "docs", ROOT / "docs/adr", ROOT / "docs/results")
    return {
        path: path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob("*.md"))
    }


PAGES = pages()
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]


def anchors(page: str) -> set[str]:
    """The headings as links name them."""
    titles = re.findall(r"^#+ (.*)$", page, re.M)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    for link in LINK.findall(PAGES[page]):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def test_a_page_can_be_reached_from_the_first_one() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or page not in PAGES:
            continue
        reached.add(page)
        ahead += [(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(PAGES[page])]
    folders = (ROOT, ROOT / "docs")
    assert [page.name for page in PAGES if page.parent in folders and page not in reached] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_key_that_is_named_exists(name: str) -> None:
    known = set(config.keys().values())
    assert [key for key in KEY.findall(PAGES[ROOT / name]) if key not in known] == []


def test_operations_lists_every_key() -> None:
    rows = re.findall(r"^\| `\[(\w+)\]` \| (.*) \|$", PAGES[ROOT / "docs/operations.md"], re.M)
    named = {(section, key) for section, keys in rows for key in re.findall(r"`([a-z-]+)`", keys)}
    assert named == set(config.keys().values())


@cache
def variables() -> set[str]:
    """The environment variables that the sources read, and those of the configuration's keys."""
    suffixes = (".py", ".c", ".h", ".sh", "Makefile", ".mk")
    sources = [path for path in tracked() if path.name.endswith(suffixes) and "docs" not in path.parts]
    found = {word for path in sources for word in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    return found | set(map(config.variable, config.keys()))


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_that_is_named_exists(name: str) -> None:
    named = {word for word in VARIABLE.findall(PAGES[ROOT / name]) if not word.startswith("DIAPAUSE_TOOLS_")}
    assert named - variables() == set()


def code(page: str) -> Iterator[str]:
    """What stands in the page as code: indented lines, and words in back quotes."""
    for line, word in CODE.findall(page):
        yield line or word


def commands(page: str) -> Iterator[str]:
    for text in code(page):
        for found in COMMAND.findall(text.partition(" #")[0]):
            yield found.strip()


def unknown(words: list[str]) -> str:
    """What of a command line of `diapause` does not exist, "" for nothing."""
    context = click.Context(main)
    command: click.Command = main
    options: set[str] = {"--help", "-h", "--version"}
    for word in words:
        if word.startswith("-"):
            if word.partition("=")[0] not in options:
                return word
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return word
            command = found
            options |= {name for option in command.params for name in option.opts}
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_is_named_exists(name: str) -> None:
    for line in commands(PAGES[ROOT / name]):
        words = [word.strip(",.…") for word in shlex.split(line.replace("\\", ""))]
        if words[0] in ("0.1.0", "beside"):
            continue
        assert unknown([word for word in words if word]) == "", line


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert list(commands("run `diapause cdi generate --fast` now")) == ["cdi generate --fast"]
    assert unknown(["cdi", "generate", "--fast"]) == "--fast"
    assert unknown(["cdi", "remove"]) == "remove"
    assert unknown(["cdi", "generate", "--output", "/etc/cdi/x.json"]) == ""


@pytest.mark.parametrize("name", NAMES)
def test_every_target_that_is_named_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    named = {word for text in code(PAGES[ROOT / name]) for word in re.findall(r"^make ([a-z]+)$", text)}
    assert named - targets == set()


def test_the_tree_names_no_machine_and_no_package_index() -> None:
    patterns = re.compile("|".join(MACHINE + INDICES + PRIVATE))
    found = []
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in patterns.finditer(text)]
        hosts = [host for host in HOST.findall(text) if not HOSTS.fullmatch(host)]
        found += [f"{path.relative_to(ROOT)}: {host}" for host in hosts]
    assert found == []
