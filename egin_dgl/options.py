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
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict, is_typeddict  # pydantic refuses typing's before Python 3.12

from egin_dgl.errors import ConfigError, did_you_mean

BOOLEANS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
MAX_COUNT = 1_000_000  # a larger count is a typing error
MAX_SHOWN = 80  # characters of an invalid value in a message
STRICT = ConfigDict(
    strict=True, extra="forbid", frozen=True, allow_inf_nan=False, str_min_length=1, protected_namespaces=()
)


def parse_bool(value: object) -> object:
    """yes, no, on and off as booleans; 0 and 1 as text, which is refused: the numbers equal False and True."""
    if type(value) is int:
        return repr(value)
    return BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value


def wording(text: str, test: Callable[[str], object] = lambda value: True) -> WrapValidator:
    """Require values of a type to pass a test; the message about others is "must be TEXT"."""

    def check(value: object, validate: ValidatorFunctionWrapHandler) -> str:
        try:
            valid = validate(value)
        except ValidationError:
            valid = None
        if valid is None or not test(valid):
            raise PydanticCustomError("wording", "Input should be {text}", {"text": text})
        return valid

    return WrapValidator(check)


T = TypeVar("T")
Flag = Annotated[bool, BeforeValidator(parse_bool)]
ListOf = Annotated[list[T], Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
CountOrZero = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Width = Annotated[int, Field(ge=1, le=4096)]  # a wider layer does not fit into memory
NumLayers = Annotated[int, Field(ge=1, le=100)]
Depth = Annotated[int, Field(ge=0, le=100)]  # colours are stable long before
Decimals = Annotated[int, Field(ge=-15, le=15)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Fraction = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Directory = Annotated[
    str, wording("the path of a directory", lambda path: os.path.isdir(os.path.expanduser(path)))
]
File = Annotated[str, wording("the path of a file", os.path.isfile)]
Name = Annotated[
    str,
    wording("a name without a path", lambda name: name not in (".", "..") and not set(name) & set("/\\\0")),
]
Url = Annotated[str, wording("a URL that begins with http:// or https://", re.compile("https?://.+").match)]
Device = Annotated[
    str,
    wording("auto, cpu, cuda or cuda:0, cuda:1, …", re.compile(r"auto|cpu(:0)?|cuda(:\d{1,4})?").fullmatch),
]

TaskOption = Literal["auto", "multiclass", "multilabel", "regression"]
Loss = Literal["auto", "mse", "mae", "huber"]

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


def format_error(
    error: ValidationError, adapter: TypeAdapter, values: Mapping[str, Any], group: str = ""
) -> str:
    """The first error as one sentence, `model.dropout must be less than or equal to 1, got 2`; unknown names come first."""
    details = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
    kind, place = details[0]["type"], details[0]["loc"]
    name, value = find_option(values, place, group)
    if kind == "extra_forbidden":
        schema = adapter.json_schema()
        if len(place) > 1:  # of a mapping inside the group, whose type has a definition of its own
            definition = re.findall(r"#/\$defs/(\w+)", str(schema["properties"][place[0]]))[0]
            schema = schema["$defs"][definition]
        known = sorted(schema.get("properties", ()))
        hint = did_you_mean(str(place[-1]), known)
        return f"there is no option {name!r}; valid: {', '.join(known) or 'none'}{hint}"
    if kind == "missing":
        return f"needed: {'.'.join(filter(None, [name, str(place[-1])]))}=…"
    same = [detail["msg"] for detail in details if find_option(values, detail["loc"], group)[0] == name]
    expected = " or ".join(re.sub(r"^\w+ should ", "", text).replace("None", "null") for text in same)
    return f"{name} must {expected}, got {format_value(value)}"


def find_option(values: Any, place: Sequence[str | int], group: str) -> tuple[str, Any]:
    """The dotted name and the value at the place of an error, where members of unions are no keys."""
    names = [group] if group else []
    for key in place:
        if isinstance(values, Mapping) and key in values:
            names, values = [*names, str(key)], values[key]
    return ".".join(names), values


def format_value(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python prints no integer of many thousand digits
        text = "a number of very many digits"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


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
    return origin is Literal or is_typeddict(hint) or hint in (Any, bool, int, float, str, list, dict)


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
