"""The host side of the control channel: talking to the library inside a process.

`page`, `frame` and `payload` know the layouts of native/include/diapause_control.h and do no I/O,
`search` finds the page of a process, `gate` closes the gate of a frozen one, `connect` and `channel`
ask, by way of `message`. Whatever comes from the process is hostile.
"""

from diapause.runtime.engine.control.channel import Channel
from diapause.runtime.engine.control.connect import connect
from diapause.runtime.engine.control.frame import Hello
from diapause.runtime.engine.control.page import ControlPage, Counter, Gate
from diapause.runtime.engine.control.payload import Device, Dropped, Memory, MemoryFlag, Quiet, Stats
from diapause.runtime.engine.control.search import find

__all__ = [
    "Channel",
    "ControlPage",
    "Counter",
    "Device",
    "Dropped",
    "Gate",
    "Hello",
    "Memory",
    "MemoryFlag",
    "Quiet",
    "Stats",
    "connect",
    "find",
]
