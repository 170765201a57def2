"""A controller of a GPU without one: `engine_gpud.py FOLDER`.

It listens where the real one does and speaks with the real one's messages, holds fds and writes an index;
what it "copies" is nothing. In FOLDER it keeps

    gpud-calls   the operations, a line each
    gpud-faults  lines `OP fail|die`, each used once
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from diapause.runtime import errors
from diapause.runtime.gpud import names, wire
from diapause.runtime.store import digest, gpu_index, layout

UUID = bytes(range(16))
GPU = names.uuid_text(UUID)


class Gpud:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.held: dict[tuple[str, int, int], tuple[gpu_index.Allocation, int]] = {}
        self._listed: list[gpu_index.Allocation] = []
        self._index = ""
        path = Path(names.socket_path(GPU))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        self._socket.listen()

    def run(self) -> None:
        print("ready", flush=True)
        while True:
            end, _ = self._socket.accept()
            threading.Thread(target=self._serve, args=(end,), daemon=True).start()

    def _serve(self, end: socket.socket) -> None:
        try:
            while (received := wire.receive(end)) is not None:
                message, fds = received
                op = message["op"]
                fault = self._note(op)
                if fault == "die":
                    os.kill(os.getpid(), signal.SIGKILL)
                answer: dict[str, Any] = {"seq": message["seq"]}
                given: list[int] = []
                if fault == "fail":
                    error = errors.Unavailable("gpu-memory", f"controller of {GPU}", "told to fail")
                    answer["error"] = wire.error_value(error)
                else:
                    more, given = getattr(self, f"_{op}")(message, fds)
                    answer |= more
                wire.send(end, answer, given)
                wire.close_all([*fds, *given])
        except OSError:
            pass

    def _note(self, op: str) -> str:
        """Record a call; what it has to do wrong, "" for nothing."""
        with (self._folder / "gpud-calls").open("a") as file:
            file.write(f"{op}\n")
        faults = self._folder / "gpud-faults"
        lines = faults.read_text().splitlines() if faults.exists() else []
        for line in lines:
            if line.split()[0] == op:
                lines.remove(line)
                faults.write_text("\n".join(lines))
                return line.split()[1]
        return ""

    def _hello(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        containers = sorted({key[0] for key in self.held})
        numbers = {"pid": os.getpid(), "pool": 0, "segments": 0, "free": 1, "total": 1}
        return {"gpu": GPU, "software": True, "containers": containers, **numbers}, []

    def _begin(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        self._listed = []
        return {}, []

    def _take(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        come = iter(fds)
        for process, id, size, address, flags, has_fd in message["allocations"]:
            a = gpu_index.Allocation(
                process=process, id=id, size=size, address=address, flags=flags, device=0
            )
            self._listed.append(a)
            if has_fd:
                self._let_go((message["container"], process, id))
                self.held[message["container"], process, id] = (a, os.dup(next(come)))
        return {}, []

    def _watch(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        return {}, []

    def _save(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        (self._folder / "gpud-sync").write_text(str(message["sync"]))
        blocks = [gpu_index.ZERO] * sum(a.blocks for a in self._listed)
        index = gpu_index.Index(devices=[UUID], files=0, allocations=self._listed, blocks=blocks)
        data = gpu_index.encode(index)
        fd = os.open(layout.GPU_INDEX, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=fds[0])
        os.write(fd, data)
        os.close(fd)
        self._index = digest.of_bytes(data)
        return {}, []

    def _load(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        fd = os.open(layout.GPU_INDEX, os.O_RDONLY, dir_fd=fds[0])
        with os.fdopen(fd, "rb") as file:
            data = file.read()
        assert digest.of_bytes(data) == message["digest"]
        self._listed = list(gpu_index.decode(data, "index").allocations)
        for a in self._listed:
            memory = os.memfd_create("loaded")
            os.pwrite(memory, f"0 {a.id}".encode(), 0)
            self.held[message["container"], a.process, a.id] = (a, memory)
        return {"allocations": len(self._listed)}, []

    def _wait(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        size = sum(a.size for a in self._listed)
        numbers = {"bytes": size, "zero": size, "written": 0, "ms": 1}
        more = {"way": "direct", "index": self._index, "phases": {}, "files": []}
        return {"done": True, **numbers, **more}, []

    def _held(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        mine = [a for (key, _, _), (a, _) in sorted(self.held.items()) if key == message["container"]]
        entries = [[a.process, a.id, a.size, a.address, a.flags] for a in mine]
        return {"allocations": entries[message["first"] :]}, []

    def _give(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        found = [self.held[message["container"], message["process"], id][1] for id in message["ids"]]
        return {}, [os.dup(fd) for fd in found]

    def _forget(self, message: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        for key in [key for key in self.held if key[0] == message["container"]]:
            self._let_go(key)
        return {}, []

    def _let_go(self, key: tuple[str, int, int]) -> None:
        if key in self.held:
            os.close(self.held.pop(key)[1])


Gpud(Path(sys.argv[1])).run()
