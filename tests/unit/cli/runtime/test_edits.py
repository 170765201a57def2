"""Files that belong to others: what stands in them stays, byte for byte where it can."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diapause.runtime.cli.runtime import toml
from diapause.runtime.cli.runtime.edits import keys
from diapause.runtime.errors import FailedPrecondition, InvalidArgument

from .conftest import PROGRAM, Node

DAEMON = "/etc/docker/daemon.json"
V2 = """\
# by hand
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry/pause:1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    snapshotter = "zfs"
    pod_annotations = ["io.example/*"]
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
      BinaryName = "/usr/bin/runc"
"""
V3 = """\
version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
"""
CONFIG = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-diapause.toml"


class TestDocker:
    def test_a_missing_file_is_made(self, node: Node) -> None:
        node.install("docker")
        assert json.loads(node.path(DAEMON).read_text()) == {
            "runtimes": {"diapause": {"path": PROGRAM}},
            "experimental": True,
            "features": {"cdi": True},
        }

    def test_other_keys_and_the_indentation_stay(self, node: Node) -> None:
        text = '{\n\t"dns": [],\n\t"runtimes": {\n\t\t"other": {\n\t\t\t"path": "ä"\n\t\t}\n\t}\n}\n'
        node.write(DAEMON, text)

        node.install("docker")

        assert all(line in node.path(DAEMON).read_text().splitlines() for line in text.splitlines()[2:5])
        assert len([line for line in node.stderr.splitlines() if line.startswith("-")]) < 5

    def test_uninstall_brings_back_the_bytes(self, node: Node) -> None:
        text = '{ "experimental":false,"dns" : [ "192.0.2.1" ] }'
        node.write(DAEMON, text)
        node.install("docker")
        assert json.loads(node.path(DAEMON).read_text())["experimental"] is True

        node.uninstall("docker")

        assert node.path(DAEMON).read_text() == text

    def test_what_was_added_since_stays_at_uninstall(self, node: Node) -> None:
        node.write(DAEMON, '{"experimental": false}')
        node.install("docker")
        data = json.loads(node.path(DAEMON).read_text())
        data["dns"] = ["192.0.2.1"]
        node.write(DAEMON, json.dumps(data))

        node.uninstall("docker")

        assert json.loads(node.path(DAEMON).read_text()) == {"experimental": False, "dns": ["192.0.2.1"]}

    def test_what_was_added_before_a_second_install_stays_too(self, node: Node) -> None:
        node.write(DAEMON, "{}")
        node.install("docker")
        data = json.loads(node.path(DAEMON).read_text())
        data["dns"] = ["192.0.2.1"]
        node.write(DAEMON, json.dumps(data))

        node.install("docker", "--runtime-path", "/srv/diapause-runc")
        node.uninstall("docker")

        assert json.loads(node.path(DAEMON).read_text()) == {"dns": ["192.0.2.1"]}

    def test_a_switch_that_was_set_to_something_else_since_stays(self, node: Node) -> None:
        node.write(DAEMON, '{"experimental": false, "x": 1}')
        node.install("docker")
        data = json.loads(node.path(DAEMON).read_text())
        data["features"] = {"cdi": False}
        node.write(DAEMON, json.dumps(data))

        node.uninstall("docker")

        assert json.loads(node.path(DAEMON).read_text()) == {
            "experimental": False, "x": 1, "features": {"cdi": False},
        }  # fmt: skip

    def test_a_runtime_of_that_name_by_somebody_else_is_refused(self, node: Node) -> None:
        text = '{"runtimes": {"diapause": {"path": "/mine"}}}'
        node.write(DAEMON, text)

        with pytest.raises(
            FailedPrecondition, match=r'runtimes.diapause.path is "/mine".*engine-config-edited'
        ):
            node.install("docker")
        assert node.path(DAEMON).read_text() == text

        node.install("docker", "--force")
        node.uninstall("docker")
        assert node.path(DAEMON).read_text() == text

    def test_what_somebody_else_set_already_is_left_by_uninstall(self, node: Node) -> None:
        text = json.dumps(
            {"runtimes": {"diapause": {"path": PROGRAM}}, "experimental": True, "features": {"cdi": True}}
        )
        node.write(DAEMON, text)
        assert node.install("docker") == "Changed nothing\n"
        assert node.uninstall("docker") == "Changed nothing\n"
        assert node.path(DAEMON).read_text() == text

    @pytest.mark.parametrize(
        ("text", "why"),
        [("{", "no JSON"), ("[]", "no JSON object"), ('{"a": 1, "a": 2}', "'a' stands there twice")],
    )
    def test_a_malformed_file_is_named_and_left(self, node: Node, text: str, why: str) -> None:
        node.write(DAEMON, text)
        with pytest.raises(InvalidArgument, match=rf"{DAEMON}.*{why}.*\[engine-json-malformed\]"):
            node.install("docker")
        assert node.path(DAEMON).read_text() == text

    def test_runtimes_that_are_no_object_are_refused(self, node: Node) -> None:
        node.write(DAEMON, '{"runtimes": []}')
        with pytest.raises(FailedPrecondition, match="runtimes is no object"):
            node.install("docker")

    def test_status_warns_of_docker_28(self, node: Node) -> None:
        node.install("docker")
        out = node("status", "--engine", "docker", "--engine-version", "28.1", status=1)
        assert "start --checkpoint" in out
        assert "start --checkpoint" not in node("status", "--engine", "docker", "--engine-version", "27.5")

    def test_status_tells_of_a_runtime_that_gets_no_checkpoint_options(self, node: Node) -> None:
        """shim-contract report 2"""
        node.install("docker")
        data = json.loads(node.path(DAEMON).read_text())
        options = {"BinaryName": "/usr/local/bin/diapause-runc"}
        data["runtimes"]["mine"] = {"runtimeType": "io.containerd.mine.v2", "options": options}
        node.write(DAEMON, json.dumps(data))
        value, good = node.facts("docker", status=1)["runtime mine"]
        assert "no checkpoint options" in value
        assert good is False

    def test_install_warns_of_docker_28_too(self, node: Node) -> None:
        node.install("docker", "--engine-version", "29.0.1")
        assert "warning: start --checkpoint" in node.stderr


class TestContainerd:
    def test_version_2_gets_a_block_with_runcs_options(self, node: Node) -> None:
        node.write(CONFIG, V2)

        node.install("containerd")

        text = node.path(CONFIG).read_text()
        assert text.startswith(V2)
        runtimes = tomllib.loads(text)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
        assert runtimes["diapause"] == {
            "runtime_type": "io.containerd.runc.v2",
            "snapshotter": "zfs",
            "pod_annotations": ["io.example/*", "diapause.dev/*"],
            "container_annotations": ["diapause.dev/*"],
            "options": {"SystemdCgroup": True, "BinaryName": PROGRAM},
        }
        node.uninstall("containerd")
        assert node.path(CONFIG).read_text() == V2

    def test_version_2_without_handlers_gets_one_for_runc_as_well(self, node: Node) -> None:
        """1.x has it by itself only as long as no other is named."""
        node.write(CONFIG, "version = 2\n")
        node.install("containerd")
        assert "runtimes.runc]" in node.path(CONFIG).read_text()
        node.uninstall("containerd")
        assert node.path(CONFIG).read_text() == "version = 2\n"

    def test_version_3_with_imports_gets_a_drop_in(self, node: Node) -> None:
        node.write(CONFIG, V3)

        node.install("containerd")

        assert node.path(CONFIG).read_text() == V3
        data = tomllib.loads(node.path(DROP_IN).read_text())
        handler = data["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]["diapause"]
        assert data["version"] == 3
        assert handler["options"] == {"SystemdCgroup": True, "BinaryName": PROGRAM}

    def test_1_x_gets_no_drop_in_although_it_has_imports(self, node: Node) -> None:
        """An import of 1.x replaces the whole table of the plugin: runc's handler and the pause image go."""
        node.write(
            CONFIG, V2.replace("version = 2", 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]')
        )

        node.install("containerd", "--engine-version", "1.7.24")

        assert not node.path(DROP_IN).exists()
        assert "diapause runtime: begin" in node.path(CONFIG).read_text()

    def test_2_x_with_a_configuration_of_version_2_gets_a_drop_in(self, node: Node) -> None:
        node.write(CONFIG, V2.replace("version = 2", 'version = 2\nimports = ["conf.d/*.toml"]'))
        node.install("containerd", "--engine-version", "2.4")
        assert "io.containerd.grpc.v1.cri" in node.path(DROP_IN).read_text()

    def test_options_of_a_drop_in_are_seen(self, node: Node) -> None:
        node.write(CONFIG, V3.partition("[")[0] + '["/etc/containerd/conf.d/*.toml"]\n')
        node.write(
            "/etc/containerd/conf.d/10-cgroup.toml",
            V3.partition("\n[")[2].join(["[", ""]),
        )
        node.install("containerd")
        assert "SystemdCgroup = true" in node.path(DROP_IN).read_text()

    @pytest.mark.parametrize(("engine", "version"), [("1.6.20", 2), ("2.4.2", 3), ("", 2)])
    def test_a_missing_file_is_made_in_a_version_that_is_read(
        self, node: Node, engine: str, version: int
    ) -> None:
        node.install("containerd", *(["--engine-version", engine] if engine else []))
        assert tomllib.loads(node.path(CONFIG).read_text())["version"] == version
        node.uninstall("containerd")
        assert not node.path("/etc").exists()

    def test_what_others_append_after_the_block_stays(self, node: Node) -> None:
        node.write(CONFIG, V2.rstrip("\n"))
        node.install("containerd")
        path = node.path(CONFIG)
        path.write_text(path.read_text() + "[debug]\nlevel = 'debug'\n")

        node.uninstall("containerd")

        assert path.read_text() == V2.rstrip("\n") + "[debug]\nlevel = 'debug'\n" or tomllib.loads(
            path.read_text()
        )

    def test_a_block_that_was_edited_is_left_unless_forced(self, node: Node) -> None:
        node.write(CONFIG, V2)
        node.install("containerd")
        path = node.path(CONFIG)
        path.write_text(path.read_text().replace(PROGRAM, "/mine"))
        for verb in (node.install, node.uninstall):
            with pytest.raises(FailedPrecondition, match=r"was edited.*--force.*\[engine-config-edited\]"):
                verb("containerd")
        assert "/mine" in path.read_text()

        node.uninstall("containerd", "--force")
        assert path.read_text() == V2

    def test_a_broken_marker_is_refused(self, node: Node) -> None:
        node.write(CONFIG, V2)
        node.install("containerd")
        path = node.path(CONFIG)
        path.write_text(path.read_text().replace("# diapause runtime: end\n", ""))
        with pytest.raises(FailedPrecondition, match="not a pair"):
            node.uninstall("containerd", "--force")

    def test_a_drop_in_that_was_edited_is_left_unless_forced(self, node: Node) -> None:
        node.write(CONFIG, V3)
        node.install("containerd")
        node.path(DROP_IN).write_text("version = 3\n")
        for verb in (node.install, node.uninstall):
            with pytest.raises(FailedPrecondition, match=r"\[engine-config-edited\]"):
                verb("containerd")
        node.uninstall("containerd", "--force")
        assert not node.path(DROP_IN).exists()

    def test_a_handler_of_that_name_by_somebody_else_is_refused(self, node: Node) -> None:
        table = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.diapause]\nruntime_type = "x"\n'
        node.write(CONFIG, V2 + table)
        with pytest.raises(FailedPrecondition, match="in another way"):
            node.install("containerd")

    def test_an_inline_table_above_is_noticed(self, node: Node) -> None:
        node.write(CONFIG, 'version = 2\nplugins = {"io.containerd.grpc.v1.cri" = {}}\n')
        with pytest.raises(FailedPrecondition, match="cannot be added"):
            node.install("containerd")

    @pytest.mark.parametrize("text", ["[plugins.cri]\n", "version = 1\n"])
    def test_version_1_is_refused_with_the_way_out(self, node: Node, text: str) -> None:
        node.write(CONFIG, text)
        with pytest.raises(FailedPrecondition, match=r"containerd config migrate.*\[engine-config-old\]"):
            node.install("containerd")

    def test_a_malformed_file_is_named_and_left(self, node: Node) -> None:
        node.write(CONFIG, "version = ")
        with pytest.raises(InvalidArgument, match=r"\[engine-config-malformed\]"):
            node.install("containerd")

    def test_status_tells_of_a_handler_that_gets_no_checkpoint_options(self, node: Node) -> None:
        node.write(CONFIG, V2)
        node.install("containerd")
        text = node.path(CONFIG).read_text()
        node.write(CONFIG, text.replace('type = "io.containerd.runc.v2"\n  snap', 'type = "x.y.v2"\n  snap'))
        value, good = node.facts("containerd", status=1)["runtime diapause"]
        assert value.startswith("it has the type x.y.v2")
        assert good is False

    def test_status_tells_of_a_disabled_cri(self, node: Node) -> None:
        node.write(CONFIG, 'version = 2\ndisabled_plugins = ["cri"]\n')
        node.install("containerd")
        assert "warning: CRI: off" in node.stderr
        assert node.facts("containerd", status=1)["CRI"] == ("off: disabled_plugins has cri", False)

    def test_a_drop_in_takes_the_place_of_the_block_after_an_upgrade(self, node: Node) -> None:
        node.write(CONFIG, V2)
        node.install("containerd", "--engine-version", "1.7.24")
        node.write(CONFIG, V3)  # the administrator migrated the file

        node.install("containerd", "--engine-version", "2.3")

        assert node.path(CONFIG).read_text() == V3
        assert node.path(DROP_IN).exists()


def test_a_version_that_is_none_is_refused(node: Node) -> None:
    with pytest.raises(InvalidArgument, match=r"\[engine-version-malformed\]"):
        node.install("docker", "--engine-version", "new")


def test_config_without_engine_is_refused(node: Node) -> None:
    with pytest.raises(InvalidArgument, match=r"\[engine-not-one\]"):
        node("status", "--config", "/x")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values))
def test_keys_come_and_go_without_a_trace(data: dict[str, object]) -> None:
    text = json.dumps(data)
    edit = keys.Keys(path="f", values=((("a", "b"), 1), (("c",), True)), own=())
    try:
        made, note = edit.made(text, None, force=False)
    except FailedPrecondition:
        assert not isinstance(data.get("a", {}), dict)
        return
    assert note is not None or made == text
    if note and made:
        assert keys.undone("f", made, note, force=False) == text
        later = json.dumps({**json.loads(made), "new": 1})
        back = keys.undone("f", later, note, force=False)
        assert back is not None
        expected = {**data, "new": 1}
        if data.get("a") == {}:  # an object that was empty before goes as well
            expected.pop("a")
        assert json.loads(back) == expected


toml_values = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), toml_values, max_size=5))
def test_a_table_reads_back_as_it_was(values: dict[str, object]) -> None:
    assert tomllib.loads(toml.table(("a", "b.c"), values)) == {"a": {"b.c": values}}
