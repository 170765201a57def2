"""The configuration: one file, overridden key by key by the environment.

A key has one name in three spellings: `path` in section `[criu]` of the file, `DIAPAUSE_CRIU_PATH` in
the environment, `criu_path` here. Loaded on the path of every managed verb: keep the imports few.
"""

from __future__ import annotations

import os
import stat

from diapause.runtime import toml
from diapause.runtime.errors import InvalidArgument, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DEFAULT_PATH = "/etc/diapause/config.toml"


class Config:
    """The values in effect; the class holds the defaults. configs/config.toml says what they mean."""

    runtime_runc: str = ""
    runtime_default_engine: str = "auto"
    criu_path: str = ""
    criu_network_lock: str = "auto"
    cdi_spec_dirs: tuple[str, ...] = ("/etc/cdi", "/var/run/cdi")
    driver_libcuda: str = ""
    driver_lock_timeout: float = 30.0
    driver_checkpoint_timeout: float = 600.0
    driver_restore_timeout: float = 600.0
    snapshot_fsync: str = "auto"
    snapshot_placement: str = "auto"
    snapshot_embed_limit: int = 256 << 20
    snapshot_store_dir: str = ""
    snapshot_memory_dir: str = ""
    snapshot_store_limit: int = 0
    gpu_idle_timeout: float = 60.0
    gpu_pool: int = 2 << 30
    gpu_memory_tier: int = 0
    gpu_memory_wait: float = 10.0
    log_level: str = "info"


CHOICES = {
    "runtime_default_engine": ("auto", "intercept", "driver", "off"),
    "criu_network_lock": ("auto", "skip", "iptables", "nftables"),
    "snapshot_fsync": ("auto", "always", "never"),
    "snapshot_placement": ("auto", "embedded", "local"),
    "log_level": ("warning", "info"),
}
RANGES = {  # seconds
    "driver_lock_timeout": (0.1, 3600.0),
    "driver_checkpoint_timeout": (1.0, 86400.0),
    "driver_restore_timeout": (1.0, 86400.0),
    "gpu_idle_timeout": (0.0, 31536000.0),
    "gpu_memory_wait": (0.0, 86400.0),
}
PATHS = ("criu_path", "driver_libcuda", "cdi_spec_dirs", "snapshot_store_dir", "snapshot_memory_dir")
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
MAX_SIZE = 1 << 62  # bytes


def keys() -> dict[str, tuple[str, str]]:
    """Every attribute of Config with its section and key in the file."""
    names = (name for name in vars(Config) if not name.startswith("_"))
    return {
        name: (section, rest.replace("_", "-"))
        for name in names
        for section, _, rest in [name.partition("_")]
    }


def variable(name: str) -> str:
    """The environment variable of an attribute."""
    return f"DIAPAUSE_{name.upper()}"


def load(environ: Mapping[str, str] = os.environ) -> Config:
    """The file that DIAPAUSE_CONFIG names, else the default one if it exists, then the environment.

    Raises InvalidArgument for what cannot be meant, NotFound if a file was named that is not there.
    """
    config = Config()
    explicit = environ.get("DIAPAUSE_CONFIG", "")
    path = explicit or DEFAULT_PATH
    if explicit or os.path.exists(path):
        _apply_file(config, path)
    for name in keys():
        if (text := environ.get(variable(name))) is not None:
            where = f"environment variable {variable(name)}"
            setattr(config, name, _checked(where, name, _from_text(where, name, text)))
    return config


def _apply_file(config: Config, path: str) -> None:
    where = f"configuration {path}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a fifo would never answer
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(22, "not a regular file", path)
            text = file.read().decode()
        tables = toml.loads(text)
    except FileNotFoundError:
        raise NotFound("config-missing", where, "no such file", "correct DIAPAUSE_CONFIG") from None
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise InvalidArgument("config-unreadable", where, why, "put a readable file there") from None
    except (ValueError, RecursionError) as e:  # of the encoding, or tomllib's
        raise InvalidArgument("config-malformed", where, str(e), "correct the file") from None
    known = {spelling: name for name, spelling in keys().items()}
    sections = sorted({section for section, _ in known})
    for section, table in tables.items():
        if section not in sections or not isinstance(table, dict):
            raise _unknown(where, f"section [{section}]", section, sections)
        for key, value in table.items():
            if (section, key) not in known:
                there = [name for owner, name in known if owner == section]
                raise _unknown(where, f"key {key!r} in section [{section}]", key, there)
            name = known[section, key]
            setattr(config, name, _checked(f"{where}, [{section}] {key}", name, value))


def _unknown(where: str, what: str, word: str, known: list[str]) -> InvalidArgument:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1, cutoff=0.5)
    todo = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
    return InvalidArgument("config-unknown-key", where, f"unknown {what}", todo)


def _from_text(where: str, name: str, text: str) -> Any:
    default = getattr(Config, name)
    if isinstance(default, tuple):
        return [part for part in text.split(":") if part]
    if isinstance(default, float):
        try:
            return float(text)
        except ValueError:
            raise _wrong(where, text, "a number of seconds") from None
    return text


def _checked(where: str, name: str, value: Any) -> Any:
    """`value` in the type of the attribute, or InvalidArgument."""
    default = getattr(Config, name)
    if isinstance(default, tuple):
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise _wrong(where, value, "a list of paths")
        value = tuple(value)
    elif isinstance(default, float):
        low, high = RANGES[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise _wrong(where, value, f"a number of seconds between {low:g} and {high:g}")
        value = float(value)
    elif isinstance(default, int):
        size = size_of(value)
        if size is None:
            raise _wrong(where, value, "a size, as 1073741824 or '1 GiB'")
        value = size
    elif not isinstance(value, str):
        raise _wrong(where, value, "a string")
    if name in CHOICES and value not in CHOICES[name]:
        raise _wrong(where, value, f"one of {', '.join(CHOICES[name])}")
    if name in PATHS:
        for part in value if isinstance(value, tuple) else (value,):
            if part and not os.path.isabs(part):
                raise _wrong(where, part, "an absolute path")
    return value


def size_of(value: object) -> int | None:
    """Bytes: a number, or a text of a number and one of UNITS. None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        number = text.rstrip("BKMGTi")
        factor = UNITS.get(text[len(number) :])
        digits = number.rstrip()
        if factor is None or not digits.isascii() or not digits.isdigit() or len(digits) > 19:
            return None
        value = int(digits) * factor
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
        return None
    return value


def _wrong(where: str, value: object, wanted: str) -> InvalidArgument:
    return InvalidArgument("config-bad-value", where, f"{value!r} is not {wanted}", "correct the value")
