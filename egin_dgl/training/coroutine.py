"""A function that pauses itself inside of calls that know nothing of it, such as a forward pass inside of a hook."""

import threading
from collections.abc import Callable


class StopCoroutine(BaseException):
    """Ends a paused function that is not continued."""


class Coroutine:
    """A function in a thread of its own, which runs only while `advance` waits for it."""

    def __init__(self, function: Callable[[], object]):
        self.function = function
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.may_run, self.has_paused = threading.Semaphore(0), threading.Semaphore(0)
        self.finished = self.stopped = False
        self.error: BaseException | None = None

    def advance(self) -> None:
        """Run the function until it pauses or ends; an exception of the function is raised here."""
        if not self.thread.ident:
            self.thread.start()
        self.may_run.release()
        self.has_paused.acquire()
        if self.error is not None:
            raise self.error

    def pause(self) -> None:
        """Called by the function: return to the caller of `advance`, until it is called again."""
        self.has_paused.release()
        self.may_run.acquire()
        if self.stopped:
            raise StopCoroutine

    def stop(self) -> None:
        """End the function where it is paused."""
        self.stopped = True
        if self.thread.ident:
            self.may_run.release()
            self.thread.join()

    def _run(self) -> None:
        self.may_run.acquire()
        try:
            self.function()
        except StopCoroutine:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.finished = True
            self.has_paused.release()
