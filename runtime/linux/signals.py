"""The C half of `signal`, which makes an enumeration of every constant: that takes milliseconds."""

from _signal import (  # type: ignore[import-not-found]
    SIG_BLOCK,
    SIG_DFL,
    SIG_SETMASK,
    SIGCHLD,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGKILL,
    SIGPIPE,
    SIGQUIT,
    SIGSTOP,
    SIGTERM,
    SIGTRAP,
    SIGTSTP,
    SIGUSR1,
    SIGUSR2,
    SIGXFSZ,
    pthread_sigmask,
    signal,
)

__all__ = [
    "SIGCHLD", "SIGCONT", "SIGHUP", "SIGINT", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTERM",
    "SIGTRAP", "SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGXFSZ", "SIG_BLOCK", "SIG_DFL", "SIG_SETMASK",
    "pthread_sigmask", "signal",
]  # fmt: skip
