import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from diapause.runtime.errors import InvalidArgument, NotFound
from diapause.runtime.oci.cdi import specs


def device(name: str, *env: str) -> dict[str, Any]:
    return {"name": name, "containerEdits": {"env": list(env)}}


def write(path: Path, kind: str, *devices: dict[str, Any], env: str = "") -> None:
    data = {"cdiVersion": "0.6.0", "kind": kind, "devices": list(devices), "containerEdits": {"env": [env]}}
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(data) if path.suffix == ".yaml" else json.dumps(data))


def test_json_and_yaml_are_read(host: Path) -> None:
    write(host / "cdi/a.json", "nvidia.com/gpu", device("0", "A=0"), env="ALL=1")
    write(host / "cdi/b.yaml", "diapause.dev/gpu", device("0", "B=0"))
    (host / "cdi/readme.txt").write_text("not one")
    directories = [str(host / "cdi"), str(host / "none")]

    assert specs.kinds(directories) == {"nvidia.com/gpu", "diapause.dev/gpu"}
    assert specs.edits("nvidia.com/gpu", ["0"], directories) == [{"env": ["ALL=1"]}, {"env": ["A=0"]}]
    assert specs.edits("diapause.dev/gpu", ["0"], directories)[1] == {"env": ["B=0"]}


def test_the_edits_of_a_file_come_once(host: Path) -> None:
    write(host / "cdi/a.json", "nvidia.com/gpu", device("0", "A=0"), device("1", "A=1"), env="ALL=1")
    assert specs.edits("nvidia.com/gpu", ["1", "0"], [str(host / "cdi")]) == [
        {"env": ["ALL=1"]}, {"env": ["A=1"]}, {"env": ["A=0"]},
    ]  # fmt: skip


def test_a_later_directory_wins(host: Path) -> None:
    write(host / "cdi/a.json", "nvidia.com/gpu", device("0", "A=static"))
    write(host / "run-cdi/a.json", "nvidia.com/gpu", device("0", "A=dynamic"))
    found = specs.edits("nvidia.com/gpu", ["0"], [str(host / "cdi"), str(host / "run-cdi")])
    assert found[1] == {"env": ["A=dynamic"]}


def test_without_a_specification_the_command_is_named(host: Path) -> None:
    with pytest.raises(NotFound, match="diapause cdi generate"):
        specs.edits("nvidia.com/gpu", ["all"], [str(host / "cdi")])


def test_an_unknown_device_names_those_there_are(host: Path) -> None:
    write(host / "cdi/a.json", "nvidia.com/gpu", device("0"), device("GPU-1"))
    with pytest.raises(NotFound, match=r"nvidia.com/gpu=7 is in none of .*a.json; known are 0, GPU-1"):
        specs.edits("nvidia.com/gpu", ["0", "7"], [str(host / "cdi")])


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{"), ("a.yaml", "a: [\n"), ("a.json", "[]"), ("a.yml", "")]
)
def test_a_broken_file_is_named(host: Path, name: str, text: str) -> None:
    (host / "cdi" / name).write_text(text)
    with pytest.raises(InvalidArgument, match=name):
        specs.kinds([str(host / "cdi")])


def test_a_broken_file_stops_nobody_who_finds_his_gpu_elsewhere(host: Path) -> None:
    (host / "cdi/0.json").write_text("{")
    os.mkfifo(host / "cdi/1.json")
    (host / "cdi/2.json").mkdir()
    write(host / "cdi/a.json", "nvidia.com/gpu", device("0", "A=0"))
    directories = [str(host / "cdi")]

    assert specs.kinds(directories) == {"nvidia.com/gpu"}
    assert specs.edits("nvidia.com/gpu", ["0"], directories)[1] == {"env": ["A=0"]}
    for kind, name in (("nvidia.com/gpu", "7"), ("diapause.dev/gpu", "0")):
        with pytest.raises(InvalidArgument, match=r"0\.json.*\[cdi-malformed\]"):
            specs.edits(kind, [name], directories)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"devices": {}}, "devices is not a list"),
        ({"devices": [1]}, r"devices\[0\] is not an object"),
        ({"devices": [{"containerEdits": []}]}, r"devices\[0\].containerEdits is not an object"),
        ({"containerEdits": {"mounts": {}}}, "containerEdits.mounts is not a list"),
        ({"containerEdits": {"mounts": [{"hostPath": "/a"}]}}, r"mounts\[0\] has no containerPath"),
        ({"containerEdits": {"mounts": [{"hostPath": "\0", "containerPath": "/a"}]}}, "has no hostPath"),
        ({"containerEdits": {"deviceNodes": [{}]}}, r"deviceNodes\[0\] has no path"),
        ({"containerEdits": {"hooks": [{"path": "/a"}]}}, r"hooks\[0\] has no hookName"),
        ({"containerEdits": {"env": [1]}}, r"env\[0\] is no str"),
        ({"containerEdits": {"additionalGids": ["x"]}}, r"additionalGids\[0\] is no int"),
    ],
)
def test_what_could_not_be_applied_is_refused_with_its_place(
    host: Path, part: dict[str, Any], why: str
) -> None:
    (host / "cdi/a.json").write_text(json.dumps({"kind": "nvidia.com/gpu", **part}))
    with pytest.raises(InvalidArgument, match=why):
        specs.read(str(host / "cdi/a.json"))
