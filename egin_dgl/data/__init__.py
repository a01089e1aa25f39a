"""Datasets of graphs with edge features: readers, encoding, splits."""

from importlib import import_module

from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.edge_list import EdgeList
from egin_dgl.data.readers.synthetic import bonds
from egin_dgl.data.readers.tu import load_tu
from egin_dgl.data.transform import Standardizer
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.reproducibility import disable_cpu_specific_kernels

__all__ = [
    "DatasetInfo",
    "EdgeList",
    "GraphDataset",
    "Standardizer",
    "Vocabulary",
    "bonds",
    "load_csv",
    "load_dgl_file",
    "load_smiles",
    "load_tu",
]

disable_cpu_specific_kernels()  # here, as every package that computes imports this one

# Imported on first use, as they need pandas.
_LAZY = {"load_csv": "csv_graphs", "load_dgl_file": "dgl_file", "load_smiles": "smiles"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.readers.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
