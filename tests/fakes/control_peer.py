"""A process with a control page, honest or not: `control_peer.py SCENARIO`.

It writes "ready" when everything is in place and ends when its standard input does. Written from
native/include/diapause_control.h, without the code that is under test.
"""

import array
import fcntl
import os
import socket
import struct
import sys
import threading

PAGE = struct.Struct("<QIIiiII8Q")
FRAME = struct.Struct("<IHHHHIIIII")
HELLO = struct.Struct("<iIiIQ20s4x")
F_ADD_SEALS, SHRINK_GROW_SEAL = 1033, 1 | 2 | 4
keep: list[object] = []


def make_page(scenario: str, peer: int) -> None:
    magic, major, pid = b"DIAPAUS1", 1, os.getpid()
    if scenario == "page-magic":
        magic = bytes(8)
    if scenario == "page-newer":
        major = 7
    if scenario == "page-of-parent":
        pid = os.getppid()
    data = PAGE.pack(int.from_bytes(magic, "little"), major, 0, pid, peer, 0, 0, *range(10, 18)).ljust(
        4096, b"\0"
    )
    if scenario == "page-file":
        path = f"/tmp/memfd:diapause-control-v1 (deleted){os.getpid()}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        os.unlink(path)
    else:
        fd = os.memfd_create("diapause-control-v1", os.MFD_ALLOW_SEALING)
    os.write(fd, data[:100] if scenario == "page-short" else data)
    if scenario not in ("page-unsealed", "page-file"):
        fcntl.fcntl(fd, F_ADD_SEALS, SHRINK_GROW_SEAL)


def answer(scenario: str, own: socket.socket, message: bytes) -> None:
    _, major, _, op, _, epoch, seq, _, _, _ = FRAME.unpack(message[:32])
    pid = 1 if scenario == "hello-pid" else os.getpid()
    payload = HELLO.pack(pid, 1, 13000, 5, 77, bytes(range(20)))
    if op == 2:
        payload = struct.pack("<9Q", *range(20, 29))
    if scenario == "hello-short":
        payload = payload[:10]
    if scenario == "hello-longer":
        payload += b"from a newer minor"
    length, status = len(payload), 0
    if scenario == "length":
        length = 0xFFFFFFFF
    if scenario == "refuses" and op == 2:
        status = 3
    if scenario == "major":
        major, status = 9, 2
    if scenario == "stale":
        for old in range(100):
            own.send(FRAME.pack(0x46504944, 1, 0, op, 0, epoch ^ 2, old, 0, 0, 0))
    head = FRAME.pack(0x46504944, major, 0, op, 0, epoch, seq, length, status, 0)
    if scenario == "magic":
        head = bytes(4) + head[4:]
    if scenario == "huge":
        own.send(head + bytes(70000))
    elif scenario == "short":
        own.send(head[:31])
    elif scenario == "empty":
        own.send(b"")
    elif scenario in ("fds", "many-fds"):
        fds = array.array("i", [0] * (3 if scenario == "fds" else 40))
        own.sendmsg([head + payload], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    else:
        own.send(head + payload)


def hand_over(scenario: str, own: socket.socket, message: bytes) -> None:
    """Answers to the requests about memory."""
    _, major, _, op, _, epoch, seq, length, _, _ = FRAME.unpack(message[:32])
    payload, status, fds = b"", STATUSES.get(scenario, 0), []
    if op == 4:
        payload = memory_list(scenario, struct.unpack("<Q", message[32:40])[0])
    if op == 6 and not status:
        payload = message[32:] if scenario != "export-others" else bytes(length)
        fds = [0] * (length // 8 + {"export-few": -1, "export-many": 1}.get(scenario, 0))
    if status == 5:
        payload = struct.pack("<IIII", 2, 3, 0, 0)
    if status == 6:
        payload = struct.pack("<iIQ", 2 if scenario == "gpu-memory" else 999, 0, 7)
    if scenario == "status-short":
        payload, status = b"abc", 6
    if scenario == "status-fds":
        status, fds = 7, [0]
    head = FRAME.pack(0x46504944, major, 1, op, len(fds), epoch, seq, len(payload), status, 0)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    own.sendmsg([head + payload], rights)


STATUSES = {"old": 3, "busy": 5, "gpu": 6, "gpu-memory": 6, "state": 7}


def memory_list(scenario: str, first: int) -> bytes:
    def entry(number: int, size: int = 2 << 20) -> bytes:
        return struct.pack("<QQQQII", number, 0x300000000000, size, 100, 0, 1 | 16 | 1 << 9)

    if scenario == "memory-endless":
        return b"".join(map(entry, range(first, first + 1600)))
    if scenario == "memory-repeats":
        return entry(1) + entry(1)
    if scenario == "memory-odd":
        return entry(1)[:-1]
    if scenario == "memory-huge":
        return entry(1, 2**63)
    return entry(first) if first < 4 else b""


def serve(scenario: str, own: socket.socket) -> None:
    while True:
        message = own.recv(70000)
        if scenario == "hangs-up":
            own.close()
            return
        if scenario == "flood":
            while True:
                own.send(FRAME.pack(0x46504944, 1, 0, 1, 0, 0, 0, 0, 0, 0))
        if FRAME.unpack(message[:32])[3] > 2:
            hand_over(scenario, own, message)
        elif scenario != "silent":
            answer(scenario, own, message)


def peer_end(scenario: str, peer: socket.socket) -> int:
    if scenario == "peer-closed":
        return 777
    if scenario == "peer-negative":
        return -1
    if scenario == "peer-file":
        return os.open("/dev/null", os.O_RDWR)
    if scenario == "peer-udp":
        other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    elif scenario == "peer-stream":
        other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)[0]
    elif scenario == "peer-listening":
        other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        other.bind(f"\0control-peer-{os.getpid()}")
        other.listen()
    elif scenario == "peer-of-another":
        return int(sys.argv[2])
    else:
        other = peer
    keep.append(other)
    return other.fileno()


def main() -> None:
    scenario = sys.argv[1]
    own, peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    keep.append(peer)
    if scenario == "hangs-up":
        keep.remove(peer)
    if scenario == "decoys":
        for _ in range(5):
            os.memfd_create("diapause-control-v1")
    if scenario != "none":
        make_page(scenario, peer_end(scenario, peer))
    threading.Thread(target=serve, args=(scenario, own), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


main()
