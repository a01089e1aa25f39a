"""All arguments of a model in one place: those that it names itself, and those that its base classes take for it.

A model passes what it does not name on to its base, as ``**options``. `help(Model)` is to name these too, so signature
and Args section of a class are put together from those of its bases when the class is made: nothing is written twice.
"""

import inspect
import re

ARGS = re.compile(r"\n\s*Args:\n(?P<lines>.*?)(?=\n\s*\n|\Z)", re.DOTALL)
NAMED = re.compile(r"^(\w+): (.*(?:\n +.*)*)", re.MULTILINE)


def gather_arguments(model: type) -> None:
    """Give the class a signature without ``**options``, and a docstring that tells each argument."""
    parameters: dict[str, inspect.Parameter] = {}
    for cls in model.__mro__:
        if "__init__" not in vars(cls):
            continue
        own = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
        named = [one for one in own if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        # What a base needs, without a default, is given by the model itself, such as its layers.
        taken = [one for one in named if one.default is not one.empty] if parameters else named
        for one in taken:
            parameters.setdefault(one.name, one)
        if not any(one.kind is one.VAR_KEYWORD for one in own):
            break
    in_order = sorted(parameters.values(), key=lambda one: (one.kind, one.default is not one.empty))
    model.__signature__ = inspect.Signature(in_order)  # type: ignore[attr-defined]
    told: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        told |= documented_arguments(vars(cls).get("__doc__") or "")
    lines = [f"    {name}: {told[name]}".replace("\n", "\n    ") for name in parameters if name in told]
    text = ARGS.sub("", inspect.cleandoc(model.__dict__.get("__doc__") or "")).rstrip()
    if lines:
        model.__doc__ = "\n".join([text, "", "Args:", *lines]).lstrip("\n") + "\n"


def documented_arguments(doc: str) -> dict[str, str]:
    """What the Args section of a docstring says of each argument."""
    section = ARGS.search("\n" + inspect.cleandoc(doc))
    return dict(NAMED.findall(inspect.cleandoc("\n" + section["lines"]))) if section else {}
