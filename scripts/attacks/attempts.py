"""One attempt of an attack: it holds if it ends in a result or one plain sentence, in time, and does nothing elsewhere."""

import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from hydra.core.global_hydra import GlobalHydra

from egin_dgl.cli import entrypoint
from egin_dgl.cli.entrypoint import describe_failure
from egin_dgl.errors import EginError

STARTS = ("subprocess.", "os.exec", "os.posix_spawn", "os.system", "os.fork")
FORBIDDEN = ("socket.", "pickle.find_class", "ctypes.dlopen")
WRITES = (
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.symlink",
    "os.link",
    "os.chmod",
    "os.truncate",
)


class Fall(AssertionError):
    """What no attack may bring about."""


class Hang(BaseException):
    """The time is up; no handler of errors in the code under attack takes it for one of its own."""


class Watch:
    """An audit hook, which stays for the life of the process and notes events while it is active."""

    def __init__(self) -> None:
        self.seen: list | None = None
        self.place, self.may_fork, self.installed = "", False, False

    def __call__(self, event: str, arguments: tuple) -> None:
        if self.seen is None:
            return
        forbidden = FORBIDDEN if self.may_fork else FORBIDDEN + STARTS
        if event == "ctypes.dlopen" and str(arguments[0]).startswith(sys.prefix):  # threadpoolctl
            return
        if event.startswith(forbidden) or event == "import" and arguments[0] == "antigravity":
            self.seen.append((event, arguments))
        elif event in WRITES or event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            self.note_write(event, arguments[0])

    def note_write(self, event: str, path: object) -> None:
        if isinstance(path, (str, bytes, Path)):
            place = os.path.abspath(os.fsdecode(path))
            if not place.startswith((self.place, "/dev/null")) and "__pycache__" not in place:
                self.seen.append((event, place))

    @contextmanager
    def active(self, place: Path, may_fork: bool) -> Iterator[list]:
        if not self.installed:
            sys.addaudithook(self)
            self.installed = True
        self.seen, self.place, self.may_fork = [], str(place), may_fork
        seen = self.seen
        try:
            yield seen
        finally:
            self.seen = None


watch = Watch()


def attempt(
    action: Callable[[], object], place: Path, may_fork: bool = False, seconds: float = 60
) -> str | None:
    """Call an action that may write below `place` only; return the sentence that refused it, None for a result."""
    message, output = None, io.StringIO()
    with (
        process_state(),
        time_limit(seconds),
        redirect_stdout(output),
        redirect_stderr(output),
        watch.active(place, may_fork) as seen,
    ):
        try:
            action()
        except EginError as error:
            message = describe_failure(error)  # as it is printed
        except SystemExit as end:
            message = None if end.code in (None, 0) else str(end.code)
    text = f"{message or ''}\n{output.getvalue()}"
    if seen:
        raise Fall(f"it caused {seen}")
    if "Traceback" in text or "\n" in (message or "").strip():
        raise Fall(f"it printed {text.strip()[-1500:]!r}")
    if {
        character
        for character in text
        if character != "\n" and (ord(character) < 32 or character in "\x7f\u202e")
    }:
        raise Fall(f"it printed control characters: {text[:1500]!r}")
    return message


@contextmanager
def process_state() -> Iterator[None]:
    """Restore what a command sets for its process."""
    root, argv, here, directory = logging.getLogger(), sys.argv[:], os.getcwd(), entrypoint.active_dir
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    disabled = logging.root.manager.disable
    try:
        yield
    finally:
        for handler in set(root.handlers) - set(handlers):
            handler.close()
        root.handlers[:], root.level, logging.raiseExceptions = handlers, level, raising
        logging.disable(disabled)
        sys.argv[:], entrypoint.active_dir = argv, directory
        os.chdir(here)
        GlobalHydra.instance().clear()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except Hang:
        raise Fall(f"it had not ended after {seconds:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
