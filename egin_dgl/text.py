"""Texts from files and directories, made safe to print."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_control(text: object) -> str:
    """Escape control characters, so that a text read from a file cannot steer the terminal it is printed on.

    Bytes of file names that are not UTF-8, lone surrogates in Python, are escaped as well.
    """
    return CONTROL.sub(lambda match: ascii(match[0])[1:-1], str(text))
