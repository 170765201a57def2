from typing import Any

import pytest

from diapause.runtime.errors import FailedPrecondition
from diapause.runtime.oci.cdi.apply import apply
from diapause.runtime.oci.spec import Spec

EDITS = {
    "env": ["A=new", "B=1"],
    "deviceNodes": [
        {"path": "/dev/diapause-gpu0", "hostPath": "/dev/null"},
        {
            "path": "/dev/given",
            "type": "c",
            "major": 10,
            "minor": 229,
            "fileMode": 0o666,
            "permissions": "rw",
        },
    ],
    "mounts": [{"hostPath": "/h/libcuda.so.1", "containerPath": "/usr/lib/libcuda.so.1"}],
    "hooks": [{"hookName": "createContainer", "path": "/h/hook", "args": ["hook"], "timeout": 3}],
    "additionalGids": [0, 44],
}


def test_every_kind_of_edit_is_made(spec: dict[str, Any]) -> None:
    spec["process"]["env"].append("A=old")
    one = Spec("/b/config.json", spec)

    apply(one, EDITS)

    assert one.env[-2:] == ["A=new", "B=1"]
    assert "A=old" not in one.env
    assert one.devices == [
        {"path": "/dev/diapause-gpu0", "type": "c", "major": 1, "minor": 3},
        {"path": "/dev/given", "type": "c", "major": 10, "minor": 229, "fileMode": 0o666},
    ]
    assert [rule["access"] for rule in one.linux["resources"]["devices"]] == ["rwm", "rw"]
    mount = one.mount_at("/usr/lib/libcuda.so.1")
    assert mount is not None
    assert (mount["type"], mount["source"]) == ("bind", "/h/libcuda.so.1")
    assert one.hooks("createContainer") == [{"path": "/h/hook", "args": ["hook"], "timeout": 3}]
    assert one.process["user"]["additionalGids"] == [44]


def test_applying_twice_changes_nothing(spec: dict[str, Any]) -> None:
    one = Spec("/b/config.json", spec)
    apply(one, EDITS)
    import copy

    once = copy.deepcopy(one.data)
    apply(one, EDITS)
    assert one.data == once


def test_a_device_that_the_host_lacks_is_named(spec: dict[str, Any]) -> None:
    with pytest.raises(FailedPrecondition, match="/dev/no-such-gpu"):
        apply(Spec("/b/config.json", spec), {"deviceNodes": [{"path": "/dev/no-such-gpu"}]})
