"""Getting components with a recipe that is a shell script: no network, no Debian needed."""

import os
import threading
from pathlib import Path

import pytest

from diapause.runtime.components.cache import Cache
from diapause.runtime.components.get import get
from diapause.runtime.components.manifest import Component, load
from diapause.runtime.errors import DiapauseError, Internal, InvalidArgument, NotFound

GOOD = 'mkdir -p "$OUT/bin"; echo "$VERSION" >"$OUT/bin/tool"; echo ran >>"$RECIPES/runs"'


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def manifest(folder: Path, script: str, **keys: str) -> dict[str, Component]:
    (folder / "recipe.sh").write_text(script)
    table = {"version": "1.0", "recipe": "script", "script": "recipe.sh", **keys}
    lines = [f'{key} = "{value}"' for key, value in table.items()]
    (folder / "manifest.toml").write_text("\n".join(["[tool]", 'programs = ["tool"]', *lines]))
    return load(folder / "manifest.toml")


def quiet(_: str) -> None:
    pass


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def test_a_component_is_made_once_for_its_version(tmp_path: Path, cache: Cache) -> None:
    components = manifest(tmp_path, GOOD)

    first = get(components, ["tool"], cache, quiet)["tool"]
    again = get(components, ["tool"], cache, quiet)["tool"]

    assert first == again
    assert (first / "bin/tool").read_text() == "1.0\n"
    assert runs(tmp_path) == 1


def test_another_version_lies_beside_the_old_one(tmp_path: Path, cache: Cache) -> None:
    old = get(manifest(tmp_path, GOOD), ["tool"], cache, quiet)["tool"]
    new = get(manifest(tmp_path, GOOD, version="2.0"), ["tool"], cache, quiet)["tool"]

    assert (old / "bin/tool").read_text() == "1.0\n"
    assert (new / "bin/tool").read_text() == "2.0\n"


def test_a_changed_recipe_makes_it_anew(tmp_path: Path, cache: Cache) -> None:
    get(manifest(tmp_path, GOOD), ["tool"], cache, quiet)
    get(manifest(tmp_path, GOOD + "; true"), ["tool"], cache, quiet)

    assert runs(tmp_path) == 2


def test_a_failure_says_what_the_tool_said_last_and_where_its_log_is(tmp_path: Path, cache: Cache) -> None:
    components = manifest(tmp_path, "echo downloading; echo no route to mirror >&2; exit 3")

    with pytest.raises(Internal, match="status 3: downloading / no route to mirror") as caught:
        get(components, ["tool"], cache, quiet)

    assert "no route to mirror" in Path(caught.value.log).read_text()


def test_a_failure_leaves_no_component_but_what_was_downloaded(tmp_path: Path, cache: Cache) -> None:
    resumed = f"if [ -e half ]; then {GOOD}; else touch half; exit 1; fi"
    components = manifest(tmp_path, resumed)
    with pytest.raises(Internal):
        get(components, ["tool"], cache, quiet)
    assert cache.find(components["tool"]) is None

    get(components, ["tool"], cache, quiet)

    assert runs(tmp_path) == 1
    assert os.listdir(cache.root / "downloads") == []
    assert os.listdir(cache.root / "tmp") == []


def test_a_recipe_that_forgot_a_program_has_failed(tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(Internal, match=r"recipe\.sh made no tool"):
        get(manifest(tmp_path, "true"), ["tool"], cache, quiet)


def test_two_at_once_make_it_once(tmp_path: Path, cache: Cache) -> None:
    components = manifest(tmp_path, f"sleep 0.3; {GOOD}")
    said: list[str] = []
    threads = [
        threading.Thread(target=get, args=(components, ["tool"], cache, said.append)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert runs(tmp_path) == 1
    assert sum("waiting" in text for text in said) == 2


def test_a_component_that_the_installation_carries_comes_first(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = tmp_path / "prefix/components/tool/bin"
    carried.mkdir(parents=True)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))

    assert get(manifest(tmp_path, GOOD), ["tool"], cache, quiet)["tool"] == carried.parent
    assert not (tmp_path / "runs").exists()


def test_an_unknown_component_is_refused_with_the_known_ones(cache: Cache) -> None:
    with pytest.raises(NotFound, match="known are: busybox, criu, debian-pair"):
        get(load(), ["cruu"], cache, quiet)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[tool", "Expected ']'"),
        ('[tool]\nversion = "1"', "key programs is missing"),
        ('[tool]\nversion = "1"\nrecipe = "script"\nprograms = []\nscirpt = ""', "unknown key scirpt"),
    ],
)
def test_a_malformed_manifest_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "bad.toml").write_text(text)

    with pytest.raises(DiapauseError, match=why):
        load(tmp_path / "bad.toml")


def test_an_unknown_recipe_is_refused(tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(InvalidArgument, match="unknown recipe magic; known are: debian, prefix, script"):
        get(manifest(tmp_path, GOOD, recipe="magic"), ["tool"], cache, quiet)


def test_the_cache_lies_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Cache.of_user().root == tmp_path / "xdg/diapause"
    monkeypatch.setenv("DIAPAUSE_CACHE", str(tmp_path / "own"))
    assert Cache.of_user().root == tmp_path / "own"
