"""Diapause with its own folders: configuration, state, run directory and device specification."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from integration.harness.tools import Toolset, install

REAL_GPU = os.environ.get("DIAPAUSE_TEST_GPU") == "real"
DRIVER_ROOT = os.environ.get("DIAPAUSE_TEST_DRIVER_ROOT", "/")  # where the real one's libraries lie

_CONFIG = """\
[runtime]
runc = "{runc}"

[criu]
path = "{criu}"
network-lock = "skip"

[cdi]
spec-dirs = ["{cdi}"]
"""


@dataclass(slots=True)
class Settings:
    """One isolated installation's folders below `base`."""

    base: Path
    env: dict[str, str]
    _text: str = ""

    @classmethod
    def make(cls, base: Path, tools: Toolset) -> "Settings":
        """Write a configuration and a device specification: of the software GPU, unless `REAL_GPU`."""
        cdi = base / "cdi"
        cdi.mkdir(parents=True, exist_ok=True)
        settings = cls(
            base,
            {
                "DIAPAUSE_CONFIG": str(base / "diapause.toml"),
                "DIAPAUSE_RUN_DIR": str(base / "run"),
                "DIAPAUSE_STATE_DIR": str(base / "lib"),
                **{name: os.environ[name] for name in ("DIAPAUSE_NATIVE_DIR",) if name in os.environ},
            },
        )
        settings.reset(_CONFIG.format(runc=tools.find("runc"), criu=tools.find("criu"), cdi=cdi))
        settings.describe_gpu()
        return settings

    @property
    def config(self) -> Path:
        return self.base / "diapause.toml"

    @property
    def cdi(self) -> Path:
        return self.base / "cdi"

    @property
    def run_dir(self) -> Path:
        return self.base / "run"

    def describe_gpu(self) -> None:
        """`diapause cdi generate` into this installation's folder."""
        argv = [str(install().cli), "cdi", "generate", "--output", str(self.cdi / "gpu.json")]
        argv += ["--driver-root", DRIVER_ROOT] if REAL_GPU else ["--software"]
        done = subprocess.run(
            argv, env={**os.environ, **self.env}, timeout=60, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"

    def registered(self) -> list[str]:
        """The keys of the containers that have a folder in the run directory."""
        folder = self.run_dir / "c"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def reset(self, text: str = "") -> None:
        """Write the configuration anew, as it was at first (or `text`, which becomes the first)."""
        self._text = text or self._text
        self.config.write_text(self._text)

    def add(self, text: str) -> None:
        """Append sections to the configuration until `reset`."""
        self.config.write_text(f"{self.config.read_text()}\n{text}")

    def configure(self, old: str, new: str) -> None:
        """Change a piece of the configuration until `reset`."""
        text = self.config.read_text()
        assert old in text, f"no {old!r} in {self.config}"
        self.config.write_text(text.replace(old, new))
