"""What a misspelt word was meant to be."""

import difflib
from collections.abc import Sequence


def nearest(word: str, choices: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, choices, 1)
    return f" (did you mean {close[0]}?)" if close else ""
