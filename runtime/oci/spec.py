"""A bundle's config.json: a raw dictionary that belongs to others, of which we change what we know.

Typed views exist only for what is looked at: unknown fields, and fields of newer versions of the OCI
runtime specification, survive an edit as they were.
"""

from __future__ import annotations

import os

from diapause.runtime import json
from diapause.runtime.errors import InvalidArgument, NotFound
from diapause.runtime.oci.shape import misshapen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

LIMIT = 64 << 20  # bytes; containerd's are 10 kB
OURS = b"diapause-hook"  # in every specification that was edited
ORIGINAL = ".diapause-orig"  # what the client wrote, beside what we made of it


class Spec:
    """The specification of one bundle."""

    __slots__ = ("_raw", "data", "path")

    def __init__(self, path: str, data: dict[str, Any], raw: bytes = b"") -> None:
        self.path = path
        self.data = data
        self._raw = raw

    @staticmethod
    def exists(bundle: str) -> bool:
        return os.path.exists(os.path.join(bundle, "config.json"))

    @classmethod
    def load(cls, bundle: str) -> Spec:
        """Raises NotFound, or InvalidArgument with line and column for what is no specification."""
        path = os.path.join(bundle, "config.json")
        what = f"specification {path}"
        todo = "have the container engine write the bundle again"
        try:
            with open(path, "rb") as file:
                raw = file.read(LIMIT + 1)
        except FileNotFoundError:
            raise NotFound("spec-missing", what, "no such file", "give the bundle with --bundle") from None
        if len(raw) > LIMIT:
            raise InvalidArgument("spec-malformed", what, f"longer than {LIMIT >> 20} MiB", todo)
        try:
            data = json.loads(raw.decode(errors="replace"))  # as Go does, for what was not written by it
        except (ValueError, RecursionError) as e:
            raise InvalidArgument("spec-malformed", what, f"not JSON: {e}", todo) from None
        spec = cls(path, data, raw)
        if wrong := misshapen(data):
            raise InvalidArgument("spec-malformed", what, wrong, todo)
        return spec

    def store(self) -> None:
        """Replace config.json in one step; what the client wrote stays beside it. No change, no write."""
        from diapause.runtime.linux.files import write_atomic

        text = json.dumps(self.data).encode()
        if text == self._raw:
            return
        mode = os.stat(self.path).st_mode & 0o777
        original = self.path + ORIGINAL
        if self._raw and not (OURS in self._raw and os.path.exists(original)):
            write_atomic(original, self._raw, mode=mode, sync=False)
        write_atomic(self.path, text, mode=mode, sync_name=False)  # the old one would do after a crash
        self._raw = text

    # Views. The lists are the specification's own: appending to them edits it.

    @property
    def bundle(self) -> str:
        return os.path.dirname(self.path)

    @property
    def annotations(self) -> dict[str, str]:
        return self.part(self.data, "annotations", {})

    @property
    def mounts(self) -> list[dict[str, Any]]:
        return self.part(self.data, "mounts", [])

    @property
    def process(self) -> dict[str, Any]:
        return self.part(self.data, "process", {})

    @property
    def linux(self) -> dict[str, Any]:
        return self.part(self.data, "linux", {})

    @property
    def devices(self) -> list[dict[str, Any]]:
        return self.part(self.linux, "devices", [])

    @property
    def env(self) -> list[str]:
        return self.part(self.process, "env", [])

    def hooks(self, stage: str) -> list[dict[str, Any]]:
        return self.part(self.part(self.data, "hooks", {}), stage, [])

    @property
    def hook_stages(self) -> list[str]:
        return list(self.data.get("hooks") or {})

    def mount_at(self, destination: str) -> dict[str, Any] | None:
        """The mount that is visible at `destination`: the last one."""
        wanted = os.path.normpath(destination)
        found = None
        for mount in self.mounts:
            if os.path.normpath(mount["destination"]) == wanted:
                found = mount
        return found

    @staticmethod
    def part(owner: dict[str, Any], name: str, empty: T) -> T:
        if owner.get(name) is None:
            owner[name] = empty
        found: T = owner[name]
        return found
