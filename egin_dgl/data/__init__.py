"""Graphs with information on their edges: where they come from and how they become tensors."""

import egin_dgl.with_dgl  # noqa: F401
from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.features import Vocabulary
from egin_dgl.data.load import load_tu
from egin_dgl.data.standardize import Standardizer
from egin_dgl.data.synthetic import bonds

__all__ = ["DatasetInfo", "GraphDataset", "Standardizer", "Vocabulary", "bonds", "load_tu"]
