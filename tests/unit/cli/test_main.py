"""The command line as a user meets it."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from diapause.runtime import config
from diapause.runtime.cli.main import main
from diapause.runtime.version import __version__


def diapause(*args: str) -> str:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_version() -> None:
    assert diapause("--version") == f"diapause {__version__}\n"


def test_every_command_loads_and_explains_itself() -> None:
    for line in diapause("--help").partition("Commands:\n")[2].splitlines():
        assert "Usage:" in diapause(line.split()[0], "--help")


def test_an_error_is_one_line_on_stderr_and_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIAPAUSE_LOG_LEVEL", "loud")

    result = CliRunner().invoke(main, ["config", "show"])

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("diapause: environment variable DIAPAUSE_LOG_LEVEL: 'loud' is not one of")
    assert result.stderr.count("\n") == 1


def test_what_config_shows_is_a_configuration_with_every_key(tmp_path: Path) -> None:
    tables = tomllib.loads(diapause("config", "show"))

    assert {(section, key) for section, table in tables.items() for key in table} == set(
        config.keys().values()
    )
    assert tables == json.loads(diapause("config", "show", "--json"))


def test_config_path_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert diapause("config", "path") == "/etc/diapause/config.toml\n"
    monkeypatch.setenv("DIAPAUSE_CONFIG", "/elsewhere.toml")
    assert diapause("config", "path") == "/elsewhere.toml\n"


def test_a_command_loads_only_what_it_needs() -> None:
    code = "import sys; from diapause.runtime.cli.main import main; sys.argv[1:] = ['--version']\n"
    code += "try: main()\nexcept SystemExit: pass\nprint(sorted(m for m in sys.modules if 'diapause' in m))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert "demo" not in done.stdout
    assert "runtime.oci" not in done.stdout
