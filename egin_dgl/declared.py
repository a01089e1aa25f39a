"""What a function or class declares of its options: names from its signature, types and ranges from its annotations."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_type_hints

from egin_dgl.errors import ConfigError
from egin_dgl.ranges import (
    BelowOne,
    Count,
    CountOrZero,
    Fraction,
    NonNegative,
    Positive,
    Range,
    is_plain,
    read,
)

# The options of torch's optimizers and schedulers, whose own annotations tell no ranges; each name means the same in all.
OF_TORCH: dict[str, Any] = {
    "T_0": Count,
    "T_max": Count,
    "T_mult": Count,
    "alpha": Fraction,
    "amsgrad": bool,
    "base_lr": NonNegative,
    "betas": tuple[BelowOne, BelowOne],
    "capturable": bool,
    "centered": bool,
    "cooldown": CountOrZero,
    "dampening": Fraction,
    "decoupled_weight_decay": bool,
    "differentiable": bool,
    "end_factor": Fraction,
    "eps": NonNegative,
    "eta_min": NonNegative,
    "factor": Fraction,
    "foreach": bool | None,
    "fused": bool | None,
    "gamma": NonNegative,
    "last_epoch": Annotated[int, Range(-1, -1, why="where a fold goes on is kept with it")],
    "lr": NonNegative,
    "lr_decay": NonNegative,
    "max_lr": NonNegative,
    "maximize": Literal[False],
    "milestones": Sequence[Count],
    "min_lr": NonNegative,
    "momentum": BelowOne,
    "momentum_decay": NonNegative,
    "nesterov": bool,
    "patience": CountOrZero,
    "power": Positive,
    "start_factor": Fraction,
    "step_size": Count,
    "threshold": NonNegative,
    "threshold_mode": Literal["rel", "abs"],
    "total_iters": Count,
    "weight_decay": NonNegative,
} | dict.fromkeys(
    ("params", "optimizer", "schedulers", "lr_lambda", "scale_fn"), object
)  # which no configuration can give


@dataclass(frozen=True)
class Declared:
    """The options of a target, by name; `others`: it also takes what it does not name."""

    hints: Mapping[str, Any]
    others: bool

    def checked(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The values as they are meant; an error tells of the first that is not one of those declared."""
        prefix = f"{where}." if where else ""
        for name in values:
            if name not in self.hints and not self.others:
                valid = ", ".join(sorted(self.hints)) or "none"
                raise ConfigError(f"there is no option {f'{prefix}{name}'!r} here; valid: {valid}")
        return {
            name: read(f"{prefix}{name}", value, self.hints.get(name, Any)) for name, value in values.items()
        }


Mine = TypeVar("Mine", bound="Options")


class Options:
    """A dataclass of options that checks itself: a wrong value is one sentence, and `no` is False."""

    group: ClassVar[str]  # its place in the configuration

    def __post_init__(self) -> None:
        for name, value in declared(type(self)).checked(vars(self), self.group).items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls: type[Mine], values: Mapping[str, Any]) -> Mine:
        """From a mapping, which may have names that are no option."""
        return cls(**declared(cls).checked(values, cls.group))


def declared(target: Callable) -> Declared:
    """Its parameters that a configuration can give; of a class also those that `**options` hands on to its bases."""
    hints: dict[str, Any] = {}
    others = False
    for function in signatures(target):
        annotations = annotations_of(function)
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters[isinstance(target, type) :]:  # without self
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                hints.setdefault(parameter.name, annotations.get(parameter.name, Any))
        others = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        if not others:
            break
    if getattr(target, "__module__", "").startswith("torch.optim"):
        hints |= {name: hint for name, hint in OF_TORCH.items() if name in hints}
    return Declared({name: hint for name, hint in hints.items() if is_plain(hint)}, others)


def signatures(target: Callable) -> list[Callable]:
    """A function itself; of a class the constructors that may be called in turn, its own first."""
    if not isinstance(target, type):
        return [target]
    own = [vars(cls)["__init__"] for cls in target.__mro__[:-1] if "__init__" in vars(cls)]
    return [function for function in own if inspect.isfunction(function)]


def annotations_of(function: Callable) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # annotations that are true for a type checker only
        return {}
