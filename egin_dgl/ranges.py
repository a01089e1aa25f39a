"""What the value of an option may be: types with ranges, as annotations, and one sentence where a value is something else.

    def __init__(self, info, hidden_dim: Width = 64, dropout: Fraction = 0.5, norm: Annotated[str, OneOf(NORMS)] = "batch"):

`Any`, and what has no annotation, takes every value.
"""

import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from egin_dgl.errors import ConfigError

WORDS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
LONGEST = 80  # characters of a wrong value that are shown
LARGEST = 1_000_000  # of what is counted: more of anything here is a slip of the hand


@dataclass(frozen=True)
class Range:
    """Numbers from `least` to `most`; or above, or below, what is itself excluded."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    why: str = ""  # the bound is there, where that is not plain

    def holds(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        low = f"from {self.least}" if self.least is not None else ""
        low = f"above {self.above}" if self.above is not None else low
        high = f"to {self.most}" if self.most is not None else ""
        high = f"to below {self.below}" if self.below is not None else high
        text = f"{low} {high or ('on' if self.least is not None else '')}".strip()
        return f"{text} ({self.why})" if self.why else text


@dataclass(frozen=True)
class OneOf:
    """One of these names."""

    choices: Collection[str]

    def holds(self, value: str) -> bool:
        return value in self.choices

    def __str__(self) -> str:
        return f"one of {', '.join(self.choices)}"


@dataclass(frozen=True)
class Such:
    """Values that pass a test, which is told in words."""

    words: str
    holds: Callable[[Any], bool]

    def __str__(self) -> str:
        return self.words


Count = Annotated[int, Range(1, LARGEST)]
CountOrZero = Annotated[int, Range(0, LARGEST)]
Width = Annotated[int, Range(1, 4096, why="a wider layer does not fit into memory")]
Layers = Annotated[int, Range(1, 100, why="each has weights of its own")]
Depth = Annotated[int, Range(0, 100, why="colours are stable long before")]
Decimals = Annotated[int, Range(-15, 15, why="a number has no more digits")]
Seed = Annotated[int, Range(0, 2**32 - 1)]
Fraction = Annotated[float, Range(0, 1)]
BelowOne = Annotated[float, Range(0, below=1)]
Positive = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(0)]
Folder = Annotated[str, Such("the path of a folder", lambda path: os.path.isdir(os.path.expanduser(path)))]
File = Annotated[str, Such("the path of a file", os.path.isfile)]
Address = Annotated[
    str, Such("an address that begins with http:// or https://", re.compile("https?://.+").match)
]


class Unfit(Exception):
    """A value is none of those declared; of a value in a mapping with its key, what is wanted there, and the value."""

    def __init__(self, key: str = "", hint: Any = None, value: Any = None):
        self.key, self.hint, self.value = key, hint, value


def read(name: str, value: Any, hint: Any) -> Any:
    """The value as its declaration means it: `no` where true or false is wanted is False; what does not fit is refused."""
    try:
        return fitted(value, hint)
    except Unfit as error:
        if error.key:
            return read(f"{name}.{error.key}", error.value, error.hint)
        raise ConfigError(f"{name} must be {wanted_by(hint)}, got {shown(value)}") from None


def fitted(value: Any, hint: Any) -> Any:
    kind, *arguments = parts(hint)
    if kind is Any:
        return value
    if kind is Annotated:
        value = fitted(value, arguments[0])
        return (
            value if all(mark.holds(value) for mark in arguments[1:] if hasattr(mark, "holds")) else unfit()
        )
    if kind is Union:
        return in_one_of(value, arguments)
    if kind is Literal:
        known = (
            WORDS.get(value.lower(), value) if isinstance(value, str) and value not in arguments else value
        )
        return known if any(type(known) is type(one) and known == one for one in arguments) else unfit()
    if kind is bool:
        known = WORDS.get(value.lower()) if isinstance(value, str) else value
        return known if isinstance(known, bool) else unfit()
    if kind in (int, float):
        return value if is_number(value, kind) else unfit()
    if kind in (str, os.PathLike):
        return value if isinstance(value, kind) and value != "" else unfit()
    if is_typeddict(kind):
        return in_mapping(value, get_type_hints(kind, include_extras=True))
    if kind in (Mapping, dict):
        inner = arguments[1] if arguments else Any
        return in_mapping(value, dict.fromkeys(value, inner) if isinstance(value, Mapping) else {})
    if kind in (Sequence, list, tuple):
        return in_list(value, kind, arguments)
    return value if isinstance(value, kind) else unfit()


def parts(hint: Any) -> list:
    """What kind of declaration it is, and what is in its brackets."""
    origin, arguments = get_origin(hint), list(get_args(hint))
    if origin is UnionType:
        origin = Union
    if hasattr(hint, "__metadata__"):  # its origin would be the type alone
        return [Annotated, *arguments]
    return [origin or (NoneType if hint is None else hint), *arguments]


def unfit() -> Any:
    raise Unfit


def is_number(value: Any, kind: Any) -> bool:
    """Not true or false, which Python counts with; nor what is not a number, nor one without end."""
    if isinstance(value, bool) or not isinstance(value, (int, kind)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return kind is int


def in_one_of(value: Any, hints: Sequence) -> Any:
    for hint in hints:
        try:
            return fitted(value, hint)
        except Unfit as error:
            if error.key:
                raise
    return unfit()


def in_mapping(value: Any, hints: Mapping[str, Any]) -> dict:
    if not isinstance(value, Mapping) or not value.keys() <= hints.keys():
        return unfit()
    found = {}
    for key, inner in value.items():
        try:
            found[key] = fitted(inner, hints[key])
        except Unfit as error:
            raise Unfit(str(key), hints[key], inner) from error
    return found


def in_list(value: Any, kind: Any, arguments: Sequence) -> list:
    """A list of any length, or a tuple with as many values as are declared."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return unfit()
    each = [arguments[0] if arguments else Any] * len(value)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        each = list(arguments)
    if len(each) != len(value) or not value:
        return unfit()
    return [fitted(inner, hint) for inner, hint in zip(value, each, strict=True)]


def wanted_by(hint: Any) -> str:
    """A declaration in words."""
    kind, *arguments = parts(hint)
    if kind is Annotated:
        marks = [str(mark) for mark in arguments[1:] if hasattr(mark, "holds")]
        is_told = any(isinstance(mark, (OneOf, Such)) for mark in arguments[1:])
        return " ".join(marks if is_told else [wanted_by(arguments[0]), *marks])
    if kind is Union:
        return " or ".join(wanted_by(one) for one in arguments if one is not os.PathLike)  # Python's own
    if kind is Literal:
        return f"one of {', '.join(str(one).lower() for one in arguments)}"
    if is_typeddict(kind):
        return f"a mapping of {', '.join(get_type_hints(kind))}"
    if kind in (Mapping, dict):
        return f"a mapping to {wanted_by(arguments[1])}" if arguments else "a mapping"
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return f"a list of {len(arguments)}, each {wanted_by(arguments[0])}"
    if kind in (Sequence, list, tuple):
        return f"a list, each {wanted_by(arguments[0])}" if arguments else "a list"
    names = {bool: "true or false", int: "a whole number", float: "a number", NoneType: "null", str: "text"}
    names[os.PathLike] = "a path"
    return str(names.get(kind) or getattr(kind, "__name__", "another value"))


def shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python prints no whole number of many thousand digits
        text = "a number of very many digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def is_plain(hint: Any) -> bool:
    """Whether values of a configuration can fit: numbers, texts, true or false, and lists and mappings of these."""
    kind, *arguments = parts(hint)
    if kind is Annotated:
        return is_plain(arguments[0])
    if kind is Union:
        return any(is_plain(one) for one in arguments if one is not NoneType)
    if kind in (Sequence, list, tuple, Mapping, dict):
        return all(is_plain(one) for one in arguments if one is not Ellipsis)
    return kind in (Any, NoneType, bool, int, float, str, os.PathLike, Literal) or is_typeddict(kind)
