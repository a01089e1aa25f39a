"""Facts about the datasets of the paper's tables: sizes, the majority class, the bounds of 1-WL and E-WL, and which
perturbations of edges change nothing."""

import json
from pathlib import Path

import numpy as np

from docgen.results import table_options
from egin_dgl.cli.commands.edges import is_unchanged
from egin_dgl.cli.config_dirs import compose_config
from egin_dgl.cli.experiment import build
from egin_dgl.cli.validation import resolve_settings
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.ewl.bounds import highest_accuracy
from egin_dgl.ewl.refinement import refine
from egin_dgl.files import write_text
from egin_dgl.reporting.edges.study import VARIANTS

DEPTH = 5  # of the E-WL kernel; the networks have four layers at most
DECIMALS = 6


def write_facts(root: Path, path: Path) -> None:
    facts = {}
    for option in table_options(root)[0]:
        dataset = load(option)
        same = [one.name for one in VARIANTS[1:] if is_unchanged(dataset, load(option, *one.overrides))]
        facts[option] = describe(dataset) | {"unchanged": same}
        print(option, facts[option])
    lines = ",\n".join(f"{json.dumps(option)}: {json.dumps(found)}" for option, found in facts.items())
    write_text(path, "{\n" + lines + "\n}\n")


def load(option: str, *overrides: str) -> GraphDataset:
    return build(resolve_settings(compose_config([f"dataset={option}", *overrides])), "dataset")


def describe(dataset: GraphDataset) -> dict:
    labels = dataset.labels.numpy()
    facts: dict[str, object] = {"graphs": len(dataset), "classes": dataset.info.classes}
    facts["majority"] = round(float(np.bincount(labels).max() / len(labels)), DECIMALS)
    for method in ("1-wl", "e-wl"):
        classes = refine(dataset, method, depth=DEPTH).graph_classes()
        facts[method] = round(highest_accuracy(classes, labels), DECIMALS)
    return facts | {"data": dataset.digest[:16]}
