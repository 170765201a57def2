from typing import Any

from diapause.runtime.oci.edits import hooks
from diapause.runtime.oci.spec import Spec


def test_entries_are_absolute_have_an_environment_and_a_timeout(spec: dict[str, Any]) -> None:
    hooks.install(
        Spec("/b/config.json", spec), "/opt/d/bin/diapause-hook", "k" * 32, "1-2", {"LD_PRELOAD": "/x.so"}
    )

    words = {"createRuntime": ["register"], "poststop": ["cleanup", "--maker", "1-2"]}
    for stage, expected in words.items():
        (entry,) = spec["hooks"][stage]
        assert entry["path"] == "/opt/d/bin/diapause-hook"
        assert entry["args"] == ["diapause-hook", *expected, "--key", "k" * 32]
        assert entry["env"] == ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"]
        assert entry["timeout"] > 0
    assert set(spec["hooks"]) == {"createRuntime", "poststop"}


def test_the_directories_of_a_test_host_are_passed_on(spec: dict[str, Any]) -> None:
    hooks.install(
        Spec("/b/config.json", spec), "/h/diapause-hook", "k", "1-2", {"DIAPAUSE_RUN_DIR": "/tmp/run"}
    )
    assert "DIAPAUSE_RUN_DIR=/tmp/run" in spec["hooks"]["poststop"][0]["env"]


def test_installing_again_replaces_our_entries_and_keeps_others(spec: dict[str, Any]) -> None:
    other = {"path": "/usr/bin/other", "args": ["other"]}
    spec["hooks"] = {"createRuntime": [other]}
    for key in ("1", "2"):
        hooks.install(Spec("/b/config.json", spec), "/h/diapause-hook", key, "1-2", {})

    first, second = spec["hooks"]["createRuntime"]
    assert (first, second["args"][-1]) == (other, "2")
