"""Imports of large libraries without garbage collection, which takes a fifth of their time."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable garbage collection inside the block, and exempt what was created there from later collections."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def import_in_background(*modules: str) -> None:
    """Import modules in a thread, while this process waits for its workers."""

    def load() -> None:
        with suppress(Exception), gc_disabled():  # a later import in the main thread reports the error
            for module in modules:
                import_module(module)

    threading.Thread(target=load, daemon=True).start()
