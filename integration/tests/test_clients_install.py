"""`diapause runtime install`, judged by the engines: what containerd and Docker read of what was written."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from integration.harness.tools import SETS, install, toolset

CONFIG = "etc/containerd/config.toml"
CONFIGS = {
    "version 2": """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:1"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = true
""",
    "version 2 with imports": """\
version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = true
""",
    "version 3 with imports": """\
version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
""",
    "none": "",
}


def dump(root: Path, tools: str) -> dict[str, Any]:
    """The CRI configuration that containerd ends up with; it runs in the directory as its root."""
    (root / "containerd").write_bytes(toolset(tools).find("containerd").read_bytes())
    (root / "containerd").chmod(0o755)
    mounts = ""
    for name in ("lib", "lib64", "usr/lib"):  # Debian's is linked dynamically
        (root / name).mkdir(parents=True, exist_ok=True)
        mounts += f"mount --rbind /{name} {root}/{name} && "
    verb = f"-c /{CONFIG} config dump" if (root / CONFIG).exists() else "config default"
    command = f"{mounts} chroot {root} /containerd {verb}"
    argv = ["unshare", "--mount", "sh", "-c", command]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    plugins = tomllib.loads(done.stdout)["plugins"]
    found: dict[str, Any] = (
        plugins.get("io.containerd.cri.v1.runtime") or plugins["io.containerd.grpc.v1.cri"]
    )
    return found


@pytest.mark.parametrize("tools", SETS)
@pytest.mark.parametrize("name", CONFIGS)
def test_containerd_has_our_handler_and_everything_else_as_before(
    tmp_path: Path, tools: str, name: str
) -> None:
    if tools == "debian" and name.startswith("version 3"):
        pytest.skip("containerd 1.6 reads no version 3")
    if CONFIGS[name]:
        (tmp_path / CONFIG).parent.mkdir(parents=True)
        (tmp_path / CONFIG).write_text(CONFIGS[name])
    version = {"debian": "1.6.20", "current": "2.4.2"}[tools]
    before = dump(tmp_path, tools)

    argv = [str(install().cli), "runtime", "install", "--engine", "containerd", "--root", str(tmp_path)]
    subprocess.run([*argv, "--engine-version", version], check=True, timeout=60, capture_output=True)

    after = dump(tmp_path, tools)
    handler = after["containerd"]["runtimes"].pop("diapause")
    assert handler["options"]["BinaryName"] == "/usr/local/bin/diapause-runc"
    assert handler["options"].get("SystemdCgroup", False) is bool(CONFIGS[name])
    assert handler["runtime_type"] == "io.containerd.runc.v2"
    for config in (before, after):  # what 1.x fills in only for the handler that it has by itself
        config["containerd"]["runtimes"]["runc"].pop("options")
    assert after == before
