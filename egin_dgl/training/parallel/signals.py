"""SIGINT (Ctrl-C) and SIGTERM (SLURM, Docker) stop a fold after the current epoch, which is saved first.

An epoch that takes longer than GRACE is abandoned; its fold resumes from the checkpoint before it.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

GRACE = 5.0  # seconds; Docker waits ten before it kills

HANDLED = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGALRM"):  # not on Windows
    HANDLED.append(signal.SIGALRM)  # raised by our own timer when GRACE is over


class Interrupted(KeyboardInterrupt):
    """A signal with this number asked the process to stop."""

    def __init__(self, number: int = signal.SIGINT):
        super().__init__(number)
        self.number = number


_state: dict = {"received": None, "deferred": False, "worker": False}


def on_signal(number: int, frame: FrameType | None) -> None:
    received = _state["received"]
    if received is not None and number not in (received, getattr(signal, "SIGALRM", received)):
        return  # terminal and parent may both send one; only a repeated signal means "at once"
    _state["received"] = received or number
    if _state["deferred"] and received is None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, GRACE)
        return
    if _state["worker"]:
        os._exit(128 + _state["received"])
    raise Interrupted(_state["received"])


@contextmanager
def handle_signals() -> Iterator[None]:
    """Raise Interrupted for a signal inside the block, after the current epoch if one is running."""
    if threading.current_thread() is not threading.main_thread():  # other threads receive no signals
        yield
        return
    # Ignored signals stay ignored: a shell's background job must not react to Ctrl-C.
    before = {number: signal.getsignal(number) for number in HANDLED}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    _state["received"] = None
    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        _state["received"] = None
        for number, handler in before.items():
            signal.signal(number, handler)


def handle_signals_in_worker() -> None:
    """For fold workers: the parent handles Ctrl-C and then sends SIGTERM."""
    _state["worker"] = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in HANDLED[1:]:
        signal.signal(number, on_signal)


@contextmanager
def defer_until_epoch_end() -> Iterator[None]:
    """Inside the block a signal only sets `stop_requested`; Interrupted is raised at the end of the block."""
    _state["deferred"] = True
    try:
        yield
    finally:
        _state["deferred"] = False
        if _state["received"] is not None and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
    raise_if_stop_requested()


def stop_requested() -> bool:
    return _state["received"] is not None and _state["deferred"]


def raise_if_stop_requested() -> None:
    if _state["received"] is not None:
        raise_interrupted()


def raise_interrupted() -> NoReturn:
    """Stop for the signal that this process, or another rank, has received."""
    raise Interrupted(_state["received"] or signal.SIGTERM)
