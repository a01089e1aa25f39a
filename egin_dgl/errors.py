"""Errors for users: each message is one sentence that says what is wrong and what to do."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class EginError(Exception):
    """Base of all errors that the app prints as one line instead of a traceback."""


class DataError(EginError, ValueError):
    """The data cannot be found, read or used."""


class ConfigError(EginError, ValueError):
    """An option or its value is invalid."""


class TrainingError(EginError):
    """Training cannot start or continue."""


class BackendError(EginError, ImportError):
    """DGL is not installed, or does not work with this torch."""


class StorageError(EginError):
    """A file cannot be written: disk or quota full, no permission."""


def one_line(error: BaseException) -> str:
    """Message on one line, with the type of errors that are neither ours nor Hydra's."""
    # OmegaConf appends the key and type of the node on further lines.
    text = " ".join(re.split(r"\s+full_key:", str(error))[0].split())
    is_known = isinstance(error, EginError) or type(error).__module__.startswith(("hydra.", "omegaconf."))
    return text if is_known else f"{type(error).__name__}: {text}"


def escape_control(text: object) -> str:
    """Escape control characters, so that a text read from a file cannot steer the terminal it is printed on.

    Bytes of file names that are not UTF-8, lone surrogates in Python, are escaped as well.
    """
    return CONTROL.sub(lambda match: ascii(match[0])[1:-1], str(text))


def escape_strings(content: Any) -> Any:
    """Escape the control characters of all strings and keys of a JSON value."""
    if isinstance(content, dict):
        return {escape_control(key): escape_strings(value) for key, value in content.items()}
    if isinstance(content, list):
        return [escape_strings(value) for value in content]
    return escape_control(content) if isinstance(content, str) else content


def list_first(items: Sequence[str], separator: str = ", ", limit: int = 3) -> str:
    """The first items of a list and the number of the others.

    >>> list_first(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    more = f" and {len(items) - limit:,} more" if len(items) > limit else ""
    return separator.join(items[:limit]) + more


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """The nearest of the valid names, in brackets; empty where none is near."""
    close = difflib.get_close_matches(name, list(choices), 1)
    return f" (did you mean {close[0]}?)" if close else ""
