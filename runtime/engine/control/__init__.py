"""The host side of the control channel: talking to the library inside a process.

`page` and `frame` know the layouts of native/include/diapause_control.h and do no I/O, `search`
finds the page of a process, `channel` connects and asks. Whatever comes from the process is hostile.
"""

from diapause.runtime.engine.control.channel import Channel, connect
from diapause.runtime.engine.control.frame import Hello
from diapause.runtime.engine.control.page import ControlPage, Counter
from diapause.runtime.engine.control.search import find

__all__ = ["Channel", "ControlPage", "Counter", "Hello", "connect", "find"]
