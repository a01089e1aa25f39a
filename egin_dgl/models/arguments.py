"""Complete signatures and Args sections for models that pass ``**options`` on to their base class.

`help(Model)`, the validation of options and the configuration files need every argument by name; it is written once, in
the class that uses it.
"""

import inspect
import re

ARGS = re.compile(r"\n\s*Args:\n(?P<lines>.*?)(?=\n\s*\n|\Z)", re.DOTALL)
ARGUMENT = re.compile(r"^(\w+): (.*(?:\n +.*)*)", re.MULTILINE)


def gather_arguments(model: type) -> None:
    """Give the class a signature without ``**options``, and a docstring with all arguments before its example."""
    parameters: dict[str, inspect.Parameter] = {}
    for cls in model.__mro__:
        if "__init__" not in vars(cls):
            continue
        declared = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
        named = [p for p in declared if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        # Arguments of a base without a default, such as its layers, are passed by the model.
        for p in named if not parameters else [p for p in named if p.default is not p.empty]:
            parameters.setdefault(p.name, p)
        if not any(p.kind is p.VAR_KEYWORD for p in declared):
            break
    ordered = sorted(parameters.values(), key=lambda p: (p.kind, p.default is not p.empty))
    model.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    described: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        described |= documented_arguments(vars(cls).get("__doc__") or "")
    lines = [f"    {p}: {described[p]}".replace("\n", "\n    ") for p in parameters if p in described]
    if lines:
        text = ARGS.sub("", inspect.cleandoc(model.__dict__.get("__doc__") or "")).strip()
        text, example, rest = text.partition("Example:")
        model.__doc__ = "\n".join([text.rstrip(), "", "Args:", *lines, "", example + rest]).strip() + "\n"


def documented_arguments(doc: str) -> dict[str, str]:
    """The arguments in the Args section of a docstring, with their descriptions."""
    section = ARGS.search("\n" + inspect.cleandoc(doc))
    return dict(ARGUMENT.findall(inspect.cleandoc("\n" + section["lines"]))) if section else {}
