"""SweepRequest to end, by Ctrl-C or by SIGTERM as SLURM and Docker send it, a fold ends after the epoch at hand and saves it.

An epoch that takes longer than the sender may wait is given up: the checkpoint before it stands.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 5.0  # seconds; Docker waits ten before it kills

HEEDED = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGALRM"):  # not on Windows
    HEEDED.append(signal.SIGALRM)  # of our own: the time is up


class Interrupted(KeyboardInterrupt):
    """The process was asked to end by the signal of this number."""

    def __init__(self, number: int = signal.SIGINT):
        super().__init__(number)
        self.number = number


_state: dict = {"asked": None, "in_epoch": False, "worker": False}


def on_signal(number: int, frame: FrameType | None) -> None:
    asked = _state["asked"]
    if asked is not None and number not in (asked, getattr(signal, "SIGALRM", asked)):
        return  # a terminal and a parent may both ask; it is the second Ctrl-C that will not wait
    _state["asked"] = asked or number
    if _state["in_epoch"] and asked is None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, GRACE)
        return
    if _state["worker"]:
        os._exit(128 + _state["asked"])
    raise Interrupted(_state["asked"])


@contextmanager
def handle_signals() -> Iterator[None]:
    """Signals that ask to end raise Interrupted inside, after the epoch at hand where there is one."""
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    # What is ignored stays so: a job in the background of a shell is not Ctrl-C's.
    before = {number: signal.getsignal(number) for number in HEEDED}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    _state["asked"] = None
    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        _state["asked"] = None
        for number, handler in before.items():
            signal.signal(number, handler)


def handle_signals_in_worker() -> None:
    """For a process that trains folds: Ctrl-C is its parent's to handle, who then sends SIGTERM."""
    _state["worker"] = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in HEEDED[1:]:
        signal.signal(number, on_signal)


@contextmanager
def defer_until_epoch_end() -> Iterator[None]:
    """Inside, a signal is noted, and `stop_requested` tells after each epoch; at the latest it is raised at the end."""
    _state["in_epoch"] = True
    try:
        yield
    finally:
        _state["in_epoch"] = False
        if _state["asked"] is not None and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
    raise_if_stop_requested()


def stop_requested() -> bool:
    return _state["asked"] is not None and _state["in_epoch"]


def raise_if_stop_requested() -> None:
    if _state["asked"] is not None:
        raise Interrupted(_state["asked"])
