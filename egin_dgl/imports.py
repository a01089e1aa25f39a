"""What is imported stays: looking through it for garbage takes a fifth of the time, and once more at the end."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Nothing is collected inside, and what was made inside is never looked at again; for imports of torch and DGL."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def import_in_background(*modules: str) -> None:
    """Import in a thread what will be needed later, while this process waits for others."""

    def load() -> None:
        with suppress(Exception), gc_disabled():  # whoever needs it imports it again, and is told
            for module in modules:
                import_module(module)

    threading.Thread(target=load, daemon=True).start()
