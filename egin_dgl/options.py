"""Types of options with bounds, and their validation by pydantic.

    def __init__(self, info: DatasetInfo, hidden_dim: Width = 64, dropout: Fraction = 0.5, **options):

The signature of a model, dataset, optimizer, … declares its options; `validate_options` checks values against it. Values are
never coerced, except that yes, no, on and off are true and false. `Any`, and a parameter without annotation, takes every
value.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from typing_extensions import TypedDict, is_typeddict  # pydantic refuses typing's before Python 3.12

from egin_dgl.errors import ConfigError
from egin_dgl.option_errors import format_error

BOOLEANS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
MAX_COUNT = 1_000_000  # a larger count is a typing error
STRICT = ConfigDict(
    strict=True, extra="forbid", frozen=True, allow_inf_nan=False, str_min_length=1, protected_namespaces=()
)


def parse_bool(value: object) -> object:
    """yes, no, on and off as booleans; 0 and 1 are refused, which equal False and True."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError
    return BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value


def require(test: Callable[[str], object]) -> AfterValidator:
    """A validator of values that pass a test."""

    def check(value: str) -> str:
        if not test(value):
            raise ValueError
        return value

    return AfterValidator(check)


def wording(text: str) -> WithJsonSchema:
    """The description of a type in messages: "must be TEXT"."""
    return WithJsonSchema({"format": text})


T = TypeVar("T")
Flag = Annotated[bool, BeforeValidator(parse_bool)]
ListOf = Annotated[list[T], Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
CountOrZero = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Width = Annotated[int, Field(ge=1, le=4096, description="a wider layer does not fit into memory")]
NumLayers = Annotated[int, Field(ge=1, le=100)]
Depth = Annotated[int, Field(ge=0, le=100, description="colours are stable long before")]
Decimals = Annotated[int, Field(ge=-15, le=15)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Fraction = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Directory = Annotated[
    str, require(lambda path: os.path.isdir(os.path.expanduser(path))), wording("the path of a directory")
]
File = Annotated[str, require(os.path.isfile), wording("the path of a file")]
Url = Annotated[
    str, require(re.compile("https?://.+").match), wording("a URL that begins with http:// or https://")
]
Device = Annotated[
    str,
    require(re.compile(r"auto|cpu(:0)?|cuda(:\d{1,4})?").fullmatch),
    wording("auto, cpu, cuda or cuda:0, cuda:1, …"),
]

# Options of torch's optimizers and schedulers, whose annotations have no bounds. A name means the same in all of them.
TORCH_TYPES: dict[str, Any] = {
    **dict.fromkeys(("T_0", "T_max", "T_mult", "step_size", "total_iters"), Count),
    **dict.fromkeys(("cooldown", "patience"), CountOrZero),
    **dict.fromkeys(("alpha", "dampening", "end_factor", "factor", "start_factor"), Fraction),
    **dict.fromkeys(("base_lr", "lr", "lr_decay", "max_lr", "min_lr", "eta_min"), NonNegative),
    **dict.fromkeys(("eps", "gamma", "momentum_decay", "threshold", "weight_decay"), NonNegative),
    **dict.fromkeys(("amsgrad", "capturable", "centered", "differentiable", "nesterov"), bool),
    **dict.fromkeys(("decoupled_weight_decay", "foreach", "fused"), bool | None),
    "betas": tuple[BelowOne, BelowOne],
    "last_epoch": Literal[-1],  # a resumed fold restores its scheduler
    "maximize": Annotated[Literal[False], BeforeValidator(parse_bool)],
    "milestones": Sequence[Count],
    "momentum": BelowOne,
    "power": Positive,
    "threshold_mode": Literal["rel", "abs"],
}
# Given by code, not by options.
TORCH_ARGUMENTS = ("params", "optimizer", "schedulers", "lr_lambda", "scale_fn")


class Options(BaseModel):
    """Base of option groups; an invalid value raises `ConfigError`."""

    model_config = STRICT
    group: ClassVar[str] = ""  # prefix of the names in messages

    def __init__(self, /, **values: Any):
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(format_error(error, TypeAdapter(type(self)), values, self.group)) from None


def validate_options(target: Callable, values: Mapping[str, Any], group: str = "") -> dict[str, Any]:
    """Values of the options of a class or function, by its signature.

    Args:
        target: the class or function that the values are passed to
        values: by name of the parameter
        group: prefix of the names in messages

    Raises:
        ConfigError: in one sentence, if a name is unknown or a value invalid
    """
    adapter = options_adapter(target)
    try:
        return adapter.validate_python(dict(values))
    except ValidationError as error:
        raise ConfigError(format_error(error, adapter, values, group)) from None


@cache
def options_adapter(target: Callable) -> TypeAdapter:
    """A validator of a dict of options: the parameters of a target that a configuration can give.

    For a class this includes the parameters of its base classes, as far as `**options` passes them on.
    """
    hints: dict[str, Any] = {}
    takes_others = False
    for function in constructors(target):
        annotations = resolve_annotations(function)
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters[isinstance(target, type) :]:  # without self
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                hints.setdefault(parameter.name, annotations.get(parameter.name, Any))
        takes_others = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        if not takes_others:
            break
    if getattr(target, "__module__", "").startswith("torch.optim"):
        hints = {name: TORCH_TYPES.get(name, hint) for name, hint in hints.items()}
        hints = {name: hint for name, hint in hints.items() if name not in TORCH_ARGUMENTS}
    fields = {name: as_option(hint) for name, hint in hints.items() if is_plain(hint)}
    schema = TypedDict("schema", fields, total=False)  # type: ignore[misc]
    schema.__pydantic_config__ = STRICT | ConfigDict(extra="allow" if takes_others else "forbid")  # type: ignore[attr-defined]
    return TypeAdapter(schema)


def constructors(target: Callable) -> list[Callable]:
    """A function itself; for a class its constructor and those of its bases, in the order of calls."""
    if not isinstance(target, type):
        return [target]
    found = [vars(cls)["__init__"] for cls in target.__mro__[:-1] if "__init__" in vars(cls)]
    return [function for function in found if inspect.isfunction(function)]


def resolve_annotations(function: Callable) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # annotations that only a type checker can resolve
        return {}


def is_plain(hint: Any) -> bool:
    """Whether values of a configuration can fit: numbers, text, booleans, and lists and mappings of these."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return is_plain(arguments[0])
    if origin in (Union, UnionType):
        return any(map(is_plain, arguments))
    if origin in (Sequence, list, tuple, Mapping, dict):
        return all(is_plain(one) for one in arguments if one is not Ellipsis)
    plain = (Any, bool, int, float, str, list, dict, os.PathLike)
    return origin is Literal or is_typeddict(hint) or hint in plain


def as_option(hint: Any) -> Any:
    """A type of a signature as configurations write it: yes and no for bool, lists (not empty) for tuples and sequences."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is bool:
        return Flag
    if origin in (Union, UnionType):
        return reduce(or_, [as_option(one) for one in arguments if one is NoneType or is_plain(one)])
    if origin is tuple and Ellipsis not in arguments:
        return Annotated[list[arguments[0]], Field(min_length=len(arguments), max_length=len(arguments))]  # type: ignore[valid-type]
    if origin in (Sequence, list, tuple):
        return ListOf[arguments[0]]  # type: ignore[valid-type]
    return hint
