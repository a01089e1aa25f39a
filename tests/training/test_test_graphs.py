"""Weights, statistics and validation scores are the same in every bit, whatever the test graphs are."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from egin_dgl.data import bonds
from egin_dgl.data.splits import Split
from egin_dgl.models import EGIN, EGINC, EGINE
from egin_dgl.training.trainer import fit_fold

NUM_KNOWN = 30  # graphs to train and to validate on
TRAIN, VALIDATION = np.arange(24), np.arange(24, NUM_KNOWN)


def with_real_edges(data, graphs):
    """The edges of some graphs with real features, of which no two are equal."""
    feats = data.edge_feats.clone()
    edges = torch.cat([torch.arange(*data.edge_offsets[g : g + 2].tolist()) for g in graphs])
    feats[edges] = torch.randn(len(edges), feats.shape[1], generator=torch.Generator().manual_seed(0))
    return data.with_features(edge_feats=feats)


def with_complete_graph(data, nodes=60):
    """A last graph, larger than all others, whose nodes are all connected."""
    first, ends = len(data.node_feats), torch.cartesian_prod(torch.arange(nodes), torch.arange(nodes))
    ends = ends[ends[:, 0] != ends[:, 1]] + first
    return replace(
        data,
        info=replace(data.info, graphs=len(data) + 1),
        labels=torch.cat([data.labels, data.labels[:1]]),
        node_offsets=torch.cat([data.node_offsets, torch.tensor([first + nodes])]),
        edge_offsets=torch.cat([data.edge_offsets, data.edge_offsets[-1:] + len(ends)]),
        src=torch.cat([data.src, ends[:, 0]]),
        dst=torch.cat([data.dst, ends[:, 1]]),
        node_feats=torch.cat([data.node_feats, torch.randn(nodes, data.info.node_dim)]),
        edge_feats=torch.cat([data.edge_feats, torch.rand(len(ends), data.info.edge_dim)]),
    )


CHANGES = {
    "fewer graphs": lambda data: data,
    "many edge vectors": lambda data: with_real_edges(data, range(NUM_KNOWN, len(data))),
    "a large complete graph": with_complete_graph,
}


@pytest.mark.parametrize("model", [EGIN, EGINC, EGINE])
@pytest.mark.parametrize("train_edges", ["types", "real"])
def test_training_does_not_depend_on_test_graphs(make_job, model, train_edges):
    data = bonds(graphs=40)
    data = with_real_edges(data, TRAIN) if train_edges == "real" else data

    def train(name, data, test):
        job = make_job(folder=name, model=model, epochs=2)
        result = fit_fold(data, replace(job, split=Split(TRAIN, VALIDATION, test)), lambda *_: None)
        scores = [(r.train_loss, r.val_loss, r.val_score, r.grad_norm) for r in result.history]
        return scores, job.folder.load_tensors()[0], result.validation_logits

    expected, weights, logits = train("expected", data, np.arange(NUM_KNOWN, 40))
    for name, change in CHANGES.items():
        changed = change(data)
        found = train(name, changed, np.arange(NUM_KNOWN, len(changed) - (name == "fewer graphs")))
        assert found[0] == expected, name
        assert all(torch.equal(found[1][key], weights[key]) for key in weights), name
        assert torch.equal(found[2], logits), name
