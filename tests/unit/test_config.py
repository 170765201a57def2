import tomllib
from pathlib import Path
from typing import Any

import pytest

from diapause.runtime import config
from diapause.runtime.errors import InvalidArgument, NotFound

DOCUMENTED = Path(__file__).parents[2] / "configs" / "config.toml"


def load(tmp_path: Path, text: str, **environ: str) -> config.Config:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return config.load({"DIAPAUSE_CONFIG": str(path), **environ})


def values(loaded: config.Config) -> dict[str, Any]:
    return {name: getattr(loaded, name) for name in list(config.keys())}


def test_the_documented_file_holds_every_key_with_its_default(tmp_path: Path) -> None:
    text = DOCUMENTED.read_text(encoding="utf-8")
    tables = tomllib.loads(text)

    written = {(section, key) for section, table in tables.items() for key in table}
    assert written == set(config.keys().values())
    assert values(load(tmp_path, text)) == values(config.Config())


def test_without_a_file_the_defaults_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(config, "DEFAULT_PATH", str(tmp_path / "none.toml"))
    assert values(config.load({})) == values(config.Config())


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    text = "[criu]\nnetwork-lock = 'iptables'\n[driver]\nlock-timeout = 5\n"
    loaded = load(tmp_path, text, DIAPAUSE_CRIU_NETWORK_LOCK="skip", DIAPAUSE_CDI_SPEC_DIRS="/a:/b")

    assert (loaded.criu_network_lock, loaded.driver_lock_timeout) == ("skip", 5.0)
    assert loaded.cdi_spec_dirs == ("/a", "/b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[criu]\nnetwork-lok = 'skip'",
            "unknown key 'network-lok' in section [criu]; did you mean 'network-lock'?",
        ),
        ("[drivers]\nlibcuda = '/x'", "unknown section [drivers]; did you mean 'driver'?"),
        ("runc = 'crun'", "unknown section [runc]"),
        ("[criu]\nqqq = 1", "known are network-lock, path"),
        (
            "[criu]\nnetwork-lock = 'none'",
            "[criu] network-lock: 'none' is not one of auto, skip, iptables, nftables",
        ),
        (
            "[driver]\nlock-timeout = 0",
            "[driver] lock-timeout: 0 is not a number of seconds between 0.1 and 3600",
        ),
        ("[driver]\nlock-timeout = true", "True is not a number of seconds"),
        ("[driver]\nlock-timeout = '5'", "'5' is not a number of seconds"),
        ("[cdi]\nspec-dirs = '/etc/cdi'", "[cdi] spec-dirs: '/etc/cdi' is not a list of paths"),
        ("[cdi]\nspec-dirs = ['cdi']", "'cdi' is not an absolute path"),
        ("[runtime]\nrunc = 1", "[runtime] runc: 1 is not a string"),
        ("[runtime\n", "line 1, column 9"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)
    assert "config.toml" in str(caught.value)


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgument, match="environment variable DIAPAUSE_DRIVER_LOCK_TIMEOUT: 'soon' is not"
    ):
        load(tmp_path, "", DIAPAUSE_DRIVER_LOCK_TIMEOUT="soon")


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"none.toml: no such file"):
        config.load({"DIAPAUSE_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("text", "bytes"),
    [
        ("1024", 1024),
        ("'0'", 0),
        ("'12 KiB'", 12 << 10),
        ("'256MiB'", 256 << 20),
        ("'3GiB'", 3 << 30),
        ("' 1 TiB '", 1 << 40),
        ("'7B'", 7),
    ],
)
def test_a_size_is_a_number_or_has_a_unit(tmp_path: Path, text: str, bytes: int) -> None:
    assert load(tmp_path, f"[snapshot]\nembed-limit = {text}").snapshot_embed_limit == bytes


@pytest.mark.parametrize(
    "text",
    ["-1", "1.5", "true", "''", "'MiB'", "'1.5 GiB'", "'1 GB'", "'1 MiBi'", "'-1'", "'²'", "'9999999 TiB'"],
)
def test_anything_else_is_no_size(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"embed-limit: .* is not a size"):
        load(tmp_path, f"[snapshot]\nembed-limit = {text}")


def test_a_size_from_the_environment(tmp_path: Path) -> None:
    assert load(tmp_path, "", DIAPAUSE_SNAPSHOT_STORE_LIMIT="2GiB").snapshot_store_limit == 2 << 30
