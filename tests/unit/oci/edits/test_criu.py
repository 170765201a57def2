import os
from typing import Any

import pytest

from diapause.runtime.oci.edits import criu
from diapause.runtime.oci.spec import Spec


@pytest.mark.parametrize(
    ("annotations", "base"),
    [
        ({}, "/etc/criu/runc.conf"),
        ({"org.criu.config": "/my.conf"}, "/my.conf"),
        ({"org.criu.config": ""}, ""),
        ({"diapause.dev/criu-config": "/a-users.conf"}, "/etc/criu/runc.conf"),
        ({"diapause.dev/criu-config": "/a-users.conf", "org.criu.config": "/my.conf"}, "/my.conf"),
    ],
)
def test_runc_reads_our_file_and_the_one_it_replaces_is_remembered(
    spec: dict[str, Any], annotations: dict[str, str], base: str
) -> None:
    one = Spec("/b/config.json", {**spec, "annotations": annotations})
    run = os.environ["DIAPAUSE_RUN_DIR"]

    assert criu.point(one, f"{run}/c/1") == base
    assert one.annotations["org.criu.config"] == f"{run}/c/1/criu.conf"
    assert criu.point(one, f"{run}/c/2") == base
    assert one.annotations["org.criu.config"] == f"{run}/c/2/criu.conf"
