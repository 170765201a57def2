"""A process with our library at work: `engine_library.py [--away] [--busy] [--old] [NAME=N …] SIZE …`.

It has one allocation for each SIZE (bytes, ids from 1), whose device memory is a memfd that says which one it
is. With `--away` it is as CRIU brings it back: gates closed, nothing attached. NAME is one of FIELDS.
Written from
native/include/diapause_control.h, without the code that is under test.
"""

import array
import fcntl
import os
import socket
import struct
import sys
import threading
import time

PAGE = struct.Struct("<QIIiiII8Q")
FRAME = struct.Struct("<IHHHHIIIII")
MEMORY = struct.Struct("<QQQQII")
UUID = bytes(range(16))
OPEN, CLOSING, CLOSED = range(3)
ATTACHED, IMPORTED, FOREIGN = 1, 2, 4
OK, BAD_OP, BUSY, GPU, STATE = 0, 3, 5, 6, 7
HELLO, QUIESCE, LIST, DEVICES, EXPORT, DROP, ATTACH, OPENS, STATS, REHOME = 1, 3, 4, 5, 6, 7, 8, 9, 10, 11
FIELDS = (
    "tracked", "slab", "program", "foreign", "async", "managed", "pinned", "native", "allocations",
    "ipc_given", "ipc_opened", "multicast", "managed_count", "foreign_count",
)  # fmt: skip


class Memory:
    def __init__(self, id: int, size: int) -> None:
        self.id = id
        self.size = size
        self.fd = os.memfd_create(f"memory-{id}")
        os.pwrite(self.fd, f"{os.getpid()} {id}".encode(), 0)
        os.ftruncate(self.fd, size)
        self.flags = ATTACHED

    def let_go(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.flags = -1, self.flags & ~(ATTACHED | IMPORTED)


class Library:
    def __init__(self, arguments: list[str]) -> None:
        self.sizes = [int(word) for word in arguments if word.isdigit()]
        self.stats = dict(word.split("=") for word in arguments if "=" in word)
        self.minor = 0 if "--old" in arguments else 1
        self.busy = "--busy" in arguments
        self.memory = {id: Memory(id, size) for id, size in enumerate(self.sizes, 1)}
        self.own, self.peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.page = os.memfd_create("diapause-control-v1", os.MFD_ALLOW_SEALING)
        magic = int.from_bytes(b"DIAPAUS1", "little")
        head = PAGE.pack(magic, 1, self.minor, os.getpid(), self.peer.fileno(), 0, 0, *bytes(8))
        os.write(self.page, head.ljust(4096, b"\0"))
        fcntl.fcntl(self.page, 1033, 6)
        if "--away" in arguments:
            self.gate = CLOSED
            for one in self.memory.values():
                one.let_go()

    @property
    def gate(self) -> int:
        return int.from_bytes(os.pread(self.page, 4, 24), "little")

    @gate.setter
    def gate(self, value: int) -> None:
        os.pwrite(self.page, value.to_bytes(4, "little"), 24)

    def serve(self) -> None:
        if "--unnamed" not in sys.argv:
            with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w", encoding="ascii") as file:
                file.write("diapause-ctl")
        while True:
            data, fds, _, _ = socket.recv_fds(self.own, 65536, 16)
            _, _, _, op, _, epoch, seq, _, _, _ = FRAME.unpack_from(data)
            status, payload, given = self.answer(op, data[32:], fds)
            for fd in fds:
                os.close(fd)
            head = FRAME.pack(0x46504944, 1, self.minor, op, len(given), epoch, seq, len(payload), status, 0)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))] if given else []
            self.own.sendmsg([head + payload], rights)

    def answer(self, op: int, payload: bytes, fds: list[int]) -> tuple[int, bytes, list[int]]:
        ids = struct.unpack(f"<{len(payload) // 8}Q", payload) if len(payload) % 8 == 0 else ()
        if op == HELLO:
            build = bytes(range(20))
            return OK, struct.pack("<iIiIQ20s4xII", os.getpid(), 1, 13000, 5, 77, build, 1, self.gate), []
        if self.minor == 0 or op not in range(QUIESCE, REHOME + 1):
            return BAD_OP, b"", []
        if op == QUIESCE:
            if self.busy:
                self.gate = OPEN
                return BUSY, struct.pack("<IIII", 0, 3, 1, 0), []
            self.gate = CLOSED
            return OK, struct.pack("<IIII", 0, 0, 1, 0), []
        if op == LIST:
            return OK, b"".join(self.entry(one) for one in self.memory.values() if one.id >= ids[0]), []
        if op == DEVICES:
            return OK, UUID + struct.pack("<II", 0, 1), []
        if op == STATS:
            return OK, struct.pack("<14Q", *(int(self.stats.get(name, 0)) for name in FIELDS)), []
        if op == OPENS:
            return self.open()
        if self.gate != CLOSED:
            return STATE, b"", []
        return self.move(op, ids, fds)

    def open(self) -> tuple[int, bytes, list[int]]:
        if not all(one.flags & ATTACHED for one in self.memory.values()):
            return STATE, b"", []
        self.gate = OPEN
        return OK, b"", []

    def move(self, op: int, ids: tuple[int, ...], fds: list[int]) -> tuple[int, bytes, list[int]]:
        chosen = [self.memory[id] for id in ids]
        if op == EXPORT:
            if not all(one.flags & ATTACHED and not one.flags & IMPORTED for one in chosen):
                return STATE, b"", []
            return OK, struct.pack(f"<{len(ids)}Q", *ids), [one.fd for one in chosen]
        if op == DROP:
            for one in self.memory.values():
                one.let_go()
            return OK, struct.pack("<QII", sum(self.sizes), len(self.sizes), 0), []
        if op == ATTACH:
            for one, fd in zip(chosen, fds, strict=True):
                if f" {one.id}" not in os.pread(fd, 64, 0).decode().rstrip("\0"):
                    return GPU, struct.pack("<iIQ", 1, 0, one.id), []
                one.fd, one.flags = os.dup(fd), one.flags | ATTACHED | IMPORTED
            return OK, b"", []
        for one in chosen:
            one.flags &= ~IMPORTED
        return OK, b"", []

    @staticmethod
    def entry(one: Memory) -> bytes:
        return MEMORY.pack(one.id, 0x1000000 * one.id, one.size, one.size, 0, one.flags)


library = Library(sys.argv[1:])
threading.Thread(target=library.serve, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
