"""Commands that take `name=value` words and no configuration: their options are the fields of a dataclass."""

from collections.abc import Sequence
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, TypeVar, get_args

import yaml

from egin_dgl.cli.nearest import nearest
from egin_dgl.cli.user_config import split_config_dir
from egin_dgl.errors import ConfigError
from egin_dgl.ranges import read

T = TypeVar("T")


def read_words(kind: type[T], words: Sequence[str]) -> T:
    """The options that the words give; each field's metadata may have a `help` line."""
    known: dict[str, Any] = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, object] = {}
    _, options = split_config_dir(words)  # which the dispatcher has made importable
    for word in options:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise ConfigError(
                f"there is no option {name!r}; valid: {', '.join(known)}{nearest(name, list(known))}"
            )
        given[name] = read_value(name, value, known[name].type)
    missing = [n for n, f in known.items() if f.default is MISSING and n not in given]
    if missing:
        raise ConfigError(f"needed: {', '.join(f'{name}=…' for name in missing)}")
    return kind(**given)


def read_value(name: str, value: str, kind: Any) -> object:
    """A word as the type and range that the field declares."""
    if value in ("null", "") and NoneType in get_args(kind):
        return None
    if kind is str or str in get_args(kind):
        if not value:
            raise ConfigError(f"{name} is empty")
        return value
    try:
        return read(name, yaml.safe_load(value), kind)
    except yaml.YAMLError:
        raise ConfigError(f"{name} cannot be {value!r}") from None


def help_text(kind: type, usage: str) -> str:
    """What `--help` prints: a line an option."""
    lines = [usage, ""]
    for field in fields(kind):
        default = "" if field.default is MISSING else f" (default: {as_word(field.default)})"
        lines.append(f"  {field.name + '=':<12} {field.metadata.get('help', '')}{default}")
    return "\n".join(lines)


def as_word(value: object) -> str:
    return {None: "null", True: "true", False: "false"}.get(value, str(value))  # type: ignore[call-overload]
