"""Which runs can be averaged."""

from typing import TYPE_CHECKING

from egin_dgl.data.readers.detect import graph_options
from egin_dgl.errors import ConfigError

if TYPE_CHECKING:
    from egin_dgl.inference.trained_run import TrainedRun


def check_same_kind(one: "TrainedRun", other: "TrainedRun") -> None:
    """Refuse runs that predict different things, or encode graphs differently."""
    parts = {
        "task": lambda run: run.info.task,
        "targets": lambda run: ", ".join(run.info.class_names or run.info.target_names),
        "node features": lambda run: run.info.node_names,
        "edge features": lambda run: run.info.edge_names,
        "options of reading": lambda run: graph_options(run.run.settings["dataset"]),
        "features of molecules": lambda run: run.run.settings["dataset"].get("features"),
    }
    for name, part in parts.items():
        if part(one) != part(other):
            found = f" ({part(one)} and {part(other)})" if name in ("task", "targets") else ""
            raise ConfigError(
                f"{one.run.folder} and {other.run.folder} cannot be averaged: they have different {name}{found}"
            )
