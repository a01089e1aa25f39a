"""Errors a person can act on: each message is one sentence that says what is wrong and what to do."""

import difflib
import re
from collections.abc import Iterable


class EginError(Exception):
    """Base of all errors the app prints as one line instead of a traceback."""


class DataError(EginError):
    """The data cannot be found, read or used as given."""


class ConfigError(EginError):
    """An option or a value is not one of the valid ones."""


class TrainingError(EginError):
    """Training cannot start or go on."""


class BackendError(EginError, ImportError):
    """DGL is not there, or not with this torch."""


class StorageError(EginError):
    """A file cannot be written: the disk or a quota is full, the folder may not be written to."""


def one_line(error: BaseException) -> str:
    """The message alone; of an error that is none of ours its kind too, as its message may say little without."""
    # OmegaConf appends the key and type of the node to its messages, on lines of their own.
    text = " ".join(re.split(r"\s+full_key:", str(error))[0].split())
    ours = isinstance(error, EginError) or type(error).__module__.startswith(("hydra.", "omegaconf."))
    return text if ours else f"{type(error).__name__}: {text}"


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """The nearest of the valid names, in brackets; empty where none is near."""
    close = difflib.get_close_matches(name, list(choices), 1)
    return f" (did you mean {close[0]}?)" if close else ""
