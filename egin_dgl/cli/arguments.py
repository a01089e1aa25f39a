"""Arguments `name=value` of commands without a configuration; their options are the fields of a pydantic model."""

from collections.abc import Sequence
from typing import Any, TypeVar

import yaml

from egin_dgl.cli.user_config import split_config_dir
from egin_dgl.errors import ConfigError
from egin_dgl.options import Options

T = TypeVar("T", bound=Options)


def parse_options(kind: type[T], arguments: Sequence[str]) -> T:
    """The options that the arguments give."""
    given: dict[str, Any] = {}
    _, overrides = split_config_dir(arguments)  # which `main` has made importable
    for override in overrides:
        name, _, value = override.partition("=")
        annotation = kind.model_fields[name].annotation if name in kind.model_fields else None
        is_text = annotation is str or (annotation == str | None and value not in ("", "null"))
        given[name] = value if is_text else parse_yaml(name, value)
    return kind(**given)


def parse_yaml(name: str, value: str) -> Any:
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"{name} cannot be {value!r}") from None


def help_text(kind: type[Options], usage: str) -> str:
    """The page of `--help`, a line per option."""
    lines = [usage, ""]
    for name, field in kind.model_fields.items():
        default = (
            "" if field.is_required() else f" (default: {yaml.safe_dump(field.default).splitlines()[0]})"
        )
        lines.append(f"  {name + '=':<12} {field.description}{default}")
    return "\n".join(lines)
