"""Names and texts from the file system, made safe to print or to paste into a shell."""

import os
import re
import shlex
from pathlib import Path

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def is_utf8(name: str) -> bool:
    """Return whether a file name is UTF-8 on disk; Python decodes other bytes to lone surrogates."""
    return name.encode(errors="replace").decode() == name


def quote_argument(argument: str) -> str:
    """Quote a command-line argument for bash, including names that are not UTF-8."""
    if is_utf8(argument):
        return shlex.quote(argument)
    return "$'{}'".format(repr(os.fsencode(argument))[2:-1].replace("'", r"\'"))


def display_path(path: Path) -> str:
    """Return a path as valid Unicode, with a replacement character for each undecodable byte."""
    return os.fsencode(path).decode(errors="replace")


def escape_control(text: str) -> str:
    """Escape control characters, so that a text read from a file cannot steer the terminal it is printed on."""
    return CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)
