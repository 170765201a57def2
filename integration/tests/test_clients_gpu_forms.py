"""Every way to ask for a GPU, and what images bring: one round trip each, on the software GPU."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness import proc, softgpu
from integration.harness.bundle import Bundle, RuncError, Runtime
from integration.harness.client import Docker, Nerdctl, toolkit
from integration.harness.node import IMAGE, Node
from integration.harness.tools import install
from integration.harness.wait import until
from integration.harness.workloads import COUNTER
from integration.tests.test_clients import Clients, clients  # noqa: F401

LIBRARIES = f"usr/lib/{os.uname().machine}-linux-gnu"
HOOK = "nvidia-container-runtime-hook"


def has_library(pid: int) -> bool:
    """Whether our library is at work in the process, and the real one behind it."""
    real = any(line.startswith("/.diapause/libcuda.so.1") for line in proc.maps(pid))
    return real and any("diapause-control" in target for target in proc.fds(pid).values())


def round_trip(bundle: Bundle) -> None:
    """Create as engines do, checkpoint and restore; our library is there before and after."""
    bundle.create()
    bundle.runtime("start", bundle.id)
    bundle.output.wait_step(3)
    assert has_library(bundle.pid())
    image = bundle.runtime.base / f"{bundle.id}.image"
    bundle.checkpoint(image)
    until(lambda: not bundle.status(), f"end of {bundle.id}")
    bundle.restore(image)
    bundle.goes_on()
    assert has_library(bundle.pid())


def hooked(bundle: Bundle, stage: str, *words: str) -> Bundle:
    bundle.spec["hooks"] = {stage: [{"path": words[0], "args": [os.path.basename(words[0]), *words[1:]]}]}
    bundle.write_spec()
    return bundle


def rootfs(bundle: Bundle, name: str) -> Path:
    path = bundle.path / "rootfs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def nvidia_kind(runtime: Runtime) -> Iterator[Path]:
    """The software GPU under NVIDIA's name, as a host in CI has it."""
    path = runtime.settings.cdi / "nvidia.json"
    argv = [str(install().cli), "cdi", "generate", "--software", "--kind", "nvidia.com/gpu", "-o", str(path)]
    subprocess.run(
        argv, env={**os.environ, **runtime.settings.env}, check=True, capture_output=True, timeout=60
    )
    yield path
    path.unlink()


# NVIDIA's hook: `docker --gpus`, `ctr --gpus` of 1.x, older nerdctl


@pytest.mark.parametrize("stage", ["prestart", "createRuntime"])
def test_nvidias_hook(runtime: Runtime, stage: str) -> None:
    program = str(nvidias(HOOK))
    round_trip(hooked(runtime.bundle(*COUNTER, engine=""), stage, program, "prestart"))


def test_containerds_hook_for_nvidias_tool(runtime: Runtime) -> None:
    words = ("oci-hook", "--", "/usr/bin/nvidia-container-cli", "configure", "--device=0", "--compute")
    round_trip(hooked(runtime.bundle(*COUNTER, engine=""), "prestart", "/usr/bin/containerd", *words))


def test_a_hook_whose_device_the_node_has_not(runtime: Runtime) -> None:
    words = ("oci-hook", "--", "/usr/bin/nvidia-container-cli", "configure", "--device=7")
    bundle = hooked(runtime.bundle(*COUNTER, engine=""), "prestart", "/usr/bin/containerd", *words)
    with pytest.raises(RuncError, match=r"gpu=7 is in none of .*\[cdi-unknown-device\]"):
        bundle.run()


# NVIDIA's runtime, below ours and above it


def nvidia_config(runtime: Runtime, low_level: Path | str) -> dict[str, str]:
    """A configuration of NVIDIA's runtime that execs `low_level`; returns what names it."""
    path = runtime.base / "nvidia.toml"
    path.write_text(
        f'[nvidia-container-runtime]\nmode = "cdi"\nruntimes = ["{low_level}"]\nlog-level = "error"\n'
        f'[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["{runtime.settings.cdi}"]\n'
        'default-kind = "nvidia.com/gpu"\n'
    )
    return {"NVIDIA_CTK_CONFIG_FILE_PATH": str(path)}


def nvidias(program: str) -> Path:
    folder = toolkit()
    if folder is None:
        pytest.skip("NVIDIA's toolkit is built with a C compiler, and this machine has none")
    return folder / program


@pytest.mark.usefixtures("nvidia_kind")
def test_nvidias_runtime_below_ours(runtime: Runtime) -> None:
    low_level = runtime.tools.find("runc")
    runtime.settings.configure(f'runc = "{low_level}"', f'runc = "{nvidias("nvidia-container-runtime")}"')
    bundle = runtime.bundle(*COUNTER, engine="", env={"NVIDIA_VISIBLE_DEVICES": "all"})
    bundle.runtime.env |= nvidia_config(runtime, low_level)

    round_trip(bundle)


@pytest.mark.usefixtures("nvidia_kind")
def test_nvidias_runtime_above_ours(runtime: Runtime) -> None:
    above = Runtime(runtime.base / "above", runtime.tools, program=nvidias("nvidia-container-runtime"))
    above.env |= nvidia_config(runtime, install().runtime) | runtime.settings.env
    try:
        bundle = above.bundle(*COUNTER, engine="", env={"NVIDIA_VISIBLE_DEVICES": "0"})
        round_trip(bundle)
    finally:
        above.clean()


def test_the_variable_alone_is_no_request(runtime: Runtime) -> None:
    bundle = runtime.bundle("/bin/ls", "/.diapause", engine="", env={"NVIDIA_VISIBLE_DEVICES": "all"})
    bundle.run()
    bundle.output.wait_line("No such file or directory")
    assert "diapause-hook" not in bundle.config.read_text()


# What images bring


def own_libcuda(bundle: Bundle, name: str) -> Path:
    """A libcuda in the image that works: the software GPU's, under a driver's name."""
    path = rootfs(bundle, name)
    shutil.copy(softgpu.folder() / "libcuda.so.1", path)
    return path


@pytest.mark.parametrize("variable", ["LD_LIBRARY_PATH", "LD_PRELOAD", ""])
def test_forward_compatibility_in_the_image(runtime: Runtime, variable: str) -> None:
    value = "/usr/local/cuda/compat" + ("/libcuda.so.1" if variable == "LD_PRELOAD" else "")
    bundle = runtime.bundle(*COUNTER, engine="intercept", env={variable: value} if variable else {})
    file = own_libcuda(bundle, "usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
    file.with_name("libcuda.so.1").symlink_to(file.name)
    file.with_name("libcuda.so").symlink_to("libcuda.so.1")
    (bundle.path / "rootfs/usr/local/cuda").symlink_to("cuda-12.4")

    round_trip(bundle)


def test_forward_compatibility_in_a_volume(runtime: Runtime) -> None:
    bundle = runtime.bundle(*COUNTER, engine="intercept", env={"LD_LIBRARY_PATH": "/data/compat"})
    volume = bundle.path / "volume/compat"
    volume.mkdir(parents=True)
    shutil.copy(softgpu.folder() / "libcuda.so.1", volume / "libcuda.so.1")
    mount = {"destination": "/data", "type": "bind", "source": str(volume.parent), "options": ["rbind", "ro"]}
    bundle.spec["mounts"] = [*list(bundle.spec["mounts"]), mount]  # type: ignore[call-overload]
    bundle.write_spec()

    round_trip(bundle)


def test_a_preload_of_the_images_own(runtime: Runtime) -> None:
    bundle = runtime.bundle(*COUNTER, engine="intercept", env={"LD_PRELOAD": "/opt/libmine.so"})
    shutil.copy(softgpu.folder() / "libnvidia-ml.so.1", rootfs(bundle, "opt/libmine.so"))

    round_trip(bundle)

    assert any("/opt/libmine.so" in line for line in proc.maps(bundle.pid()))


def _absolute(path: Path) -> None:
    path.symlink_to("/opt/libcuda.so.1")
    (path.parents[3] / "opt/libcuda.so.1").write_bytes(b"")


def _relative(path: Path) -> None:
    path.symlink_to("libcuda.so.550.54.15")
    path.with_name("libcuda.so.550.54.15").write_bytes(b"not one")


BROUGHT: dict[str, Callable[[Path], object]] = {
    "a file": lambda path: path.write_bytes(b"\x7fELF\x02 another"),
    "a relative link": _relative,
    "an absolute link": _absolute,
    "a dangling link": lambda path: path.symlink_to("nowhere"),
    "a link that leads out": lambda path: path.symlink_to("../../../../../../../opt/out.so"),
    "a fifo": os.mkfifo,
}


@pytest.mark.parametrize("make", BROUGHT.values(), ids=BROUGHT)
def test_an_image_with_a_libcuda_of_its_own(runtime: Runtime, make: Callable[[Path], object]) -> None:
    bundle = runtime.bundle(*COUNTER, engine="intercept")
    make(rootfs(bundle, f"{LIBRARIES}/libcuda.so.1"))

    round_trip(bundle)


def test_an_image_with_a_directory_in_its_place_is_refused_by_name(runtime: Runtime) -> None:
    before = runtime.footprint()
    bundle = runtime.bundle(*COUNTER, engine="intercept")
    rootfs(bundle, f"{LIBRARIES}/libcuda.so.1/x").mkdir(parents=True)

    with pytest.raises(
        RuncError, match=rf"/{LIBRARIES}/libcuda.so.1 .*a directory.*\[libcuda-target-directory\]"
    ):
        bundle.run()

    assert runtime.footprint() == before


# Where the driver is


def test_a_driver_root_other_than_the_hosts(runtime: Runtime, nvidia_kind: Path) -> None:
    root = runtime.base / "driver"
    source = root / LIBRARIES
    source.mkdir(parents=True, exist_ok=True)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        shutil.copy(softgpu.folder() / name, source / name)
    data = json.loads(nvidia_kind.read_text())
    for device in data["devices"]:
        for mount in device["containerEdits"]["mounts"]:
            mount["hostPath"] = str(source / os.path.basename(mount["hostPath"]))
    nvidia_kind.write_text(json.dumps(data))
    wanted = {"diapause.dev/gpus": "nvidia.com/gpu=all"}

    bundle = runtime.bundle(*COUNTER, engine="intercept", annotations=wanted)
    round_trip(bundle)

    private = next(
        m for m in json.loads(bundle.config.read_text())["mounts"] if "/.diapause" in m["destination"]
    )
    assert private["source"] == str(source / "libcuda.so.1")


# Requests that cannot be meant


def test_annotations_that_contradict_each_other(runtime: Runtime) -> None:
    wanted = {"diapause.dev/gpu": "off", "diapause.dev/gpu-enabled": "true"}
    with pytest.raises(RuncError, match=r"contradict each other.*\[annotations-contradict\]"):
        runtime.bundle(*COUNTER, engine="", annotations=wanted).run()


def test_a_broken_cdi_specification_stops_nobody_who_finds_his_gpu_elsewhere(runtime: Runtime) -> None:
    broken = runtime.settings.cdi / "0-broken.json"
    broken.write_text("{")
    try:
        round_trip(runtime.bundle(*COUNTER, engine="intercept"))
        wanted = {"diapause.dev/gpus": "nvidia.com/gpu=0"}
        with pytest.raises(RuncError, match=r"0-broken\.json.*\[cdi-malformed\]"):
            runtime.bundle(*COUNTER, engine="intercept", annotations=wanted).run()
    finally:
        broken.unlink()


# `--gpus` of each client


def software_as_nvidias(node: Node) -> Path:
    path = node.settings.cdi / "nvidia.json"
    argv = [str(install().cli), "cdi", "generate", "--software", "--kind", "nvidia.com/gpu", "-o", str(path)]
    subprocess.run(argv, env={**os.environ, **node.settings.env}, check=True, capture_output=True, timeout=60)
    return path


def bundle_of(node: Node, id: str) -> str:
    """The hooks in a container's config.json."""
    return json.dumps(json.loads((node.daemon.bundle(id) / "config.json").read_text())["hooks"])


def test_gpus_of_nerdctl(clients: Clients) -> None:  # noqa: F811
    client = clients.get(Nerdctl.NAME, "current")
    path = software_as_nvidias(client.node)
    try:
        container = client.run(*COUNTER, gpu=("--gpus", "all"))
        container.output.wait_step(3)
        assert has_library(container.pid())
        container.checkpoint("gpus-of-nerdctl")
        container.start_from("gpus-of-nerdctl")
        container.goes_on()
    finally:
        client.clean()
        path.unlink()


@pytest.mark.parametrize("gpus", ["all", "device=0", "1"])
def test_gpus_of_docker(clients: Clients, gpus: str) -> None:  # noqa: F811
    """Docker has the hook put in if its program is in dockerd's PATH, and no CDI is asked for."""
    nvidias(HOOK)
    client = clients.get(Docker.NAME, "current")
    container = client.run(*COUNTER, gpu=("--gpus", gpus))
    try:
        container.output.wait_step(3)
        assert has_library(container.pid())
        assert "diapause-hook" in bundle_of(client.node, container.id)
        container.checkpoint("gpus-of-docker")
        container.start_from("gpus-of-docker")
        container.goes_on()
    finally:
        client.clean()


def ctr_run(node: Node, *words: str, path: str = "") -> None:
    """`ctr run` with the node's specifications where ctr looks for them."""
    argv = node.ctr.argv("run", "-d", "--runc-binary", str(install().runtime), *words)
    mount = 'mkdir -p /var/run/cdi && mount --bind "$0" /var/run/cdi && exec "$@"'
    env = {**os.environ, "PATH": f"{path}:{node.daemon.tools.path}"}
    argv = ["unshare", "--mount", "sh", "-c", mount, str(node.settings.cdi), *argv]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=env, check=False)
    assert done.returncode == 0, done.stderr


def test_gpus_of_ctr(node: Node) -> None:
    """CDI from 2.0 on. Before, a hook that runs NVIDIA's tool, if ctr finds that."""
    tools = node.path / "nvidia-tools"
    tools.mkdir(exist_ok=True)
    (tools / "nvidia-container-cli").write_text("#!/bin/sh\nexit 1\n")
    (tools / "nvidia-container-cli").chmod(0o755)
    path = software_as_nvidias(node)
    shell = ["/bin/sh", "-c", 'exec "$@" >>/out/log 2>&1', "sh"]
    try:
        container = node.adopt(node.name())
        more = ["--cpu-shares", "0"] if node.daemon.unified else []
        ctr_run(node, *more, "--gpus", "0", IMAGE, container.id, *shell, *COUNTER, path=str(tools))
        container.output.wait_step(3)
        assert has_library(container.pid())
        image = container.checkpoint()
        container.remove()
        node.restore(image).goes_on()
    finally:
        node.clean()
        path.unlink()
