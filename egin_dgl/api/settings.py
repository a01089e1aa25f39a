"""From the arguments of an estimator to the settings of a run."""

from collections.abc import Mapping
from typing import Any

from egin_dgl.cli.config_dirs import compose_config
from egin_dgl.cli.validation import resolve_settings
from egin_dgl.runs.settings import Settings

ARGUMENTS = {  # that are options, by group
    "model": ("hidden_dim", "num_layers", "edge_dim", "learn_eps", "dropout"),
    "trainer": ("epochs", "batch_size"),
    "optimizer": ("lr",),
}


def compose_settings(arguments: Mapping[str, Any]) -> Settings:
    """Compose the configuration with the arguments of an estimator, of which None is the default."""
    values = {
        f"{group}.{name}": arguments[name]
        for group, names in ARGUMENTS.items()
        for name in names
        if arguments[name] is not None
    }
    groups = [f"{name}={arguments[name]}" for name in ("model", "seed", "device")]
    groups += ["dataset=bonds", "cv=ten_fold" if arguments["validation"] else "cv=paper"]
    # A width is ignored by models that have none, so that a grid search may include them.
    if "hidden_dim" not in compose_config(groups[:1]).model:
        values.pop("model.hidden_dim", None)
    values |= dict(arguments["options"] or {})
    overrides = [f"{key}={to_override(value)}" for key, value in values.items()]
    return resolve_settings(compose_config([*groups, *overrides]))


def to_override(value: object) -> str:
    """A value in Hydra's grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(to_override, value))}]"
    return str(value)
