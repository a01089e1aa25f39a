"""Colours as node features: fitted on the training graphs, equal after saving."""

import json
from functools import partial

import numpy as np
import pytest
import torch

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.splits import make_folds
from egin_dgl.errors import ConfigError
from egin_dgl.ewl import refine
from egin_dgl.ewl.preprocessing import ColorEmbedding, ColorFeatures, FittedColors
from egin_dgl.models import EGIN


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def mutag():
    return load_tu("MUTAG")


@pytest.fixture(scope="module")
def split(mutag):
    return make_folds(mutag.labels.numpy(), 10).split(0, validation=True)


def nodes_of(dataset, graphs):
    return np.concatenate([np.arange(*dataset.node_offsets[g : g + 2].tolist()) for g in graphs])


@pytest.mark.parametrize("encoding", ["onehot", "hash", "embedding"])
def test_columns_are_appended(mutag, split, encoding):
    after = ColorFeatures(encoding=encoding)(mutag, split.train).apply(mutag)
    assert torch.equal(after.node_feats[:, :7], mutag.node_feats)
    assert after.info.node_dim == after.node_feats.shape[1] == len(after.info.node_names)
    width = after.info.node_dim - 7
    assert width == {"hash": 16, "embedding": 1}.get(encoding, width)
    if encoding != "embedding":
        assert torch.equal(after.node_feats[:, 7:].sum(dim=1), torch.ones(len(after.node_feats)))


def test_known_and_unknown_colors(mutag, split):
    fitted = ColorFeatures(depth=2)(mutag, split.train)
    codes = fitted.codes(mutag)
    unknown = fitted.size - 1
    colors = refine(mutag, depth=2).colors[2]
    train, test = nodes_of(mutag, split.train), nodes_of(mutag, split.test)
    assert unknown not in codes[train]
    # On the training graphs, equal codes mean equal colours and vice versa.
    assert (
        len(set(zip(codes[train], colors[train], strict=True)))
        == len(set(codes[train]))
        == len(set(colors[train]))
    )
    seen = set(colors[train])
    assert [code == unknown for code in codes[test]] == [color not in seen for color in colors[test]]
    assert unknown in codes[test]


def test_fit_ignores_test_graphs(mutag, split):
    fitted = ColorFeatures()(mutag, split.train)
    feats = mutag.node_feats.clone()
    feats[nodes_of(mutag, split.test)] = feats[nodes_of(mutag, split.test)].flip(1)
    changed = ColorFeatures()(mutag.with_features(node_feats=feats), split.train)
    assert fitted.to_dict() == changed.to_dict()


def test_restored_transform_is_equal(mutag, split):
    for encoding in ("onehot", "hash", "embedding"):
        fitted = ColorFeatures(encoding=encoding)(mutag, split.train)
        again = FittedColors.from_dict(json.loads(json.dumps(fitted.to_dict())))
        assert np.array_equal(again.codes(mutag), fitted.codes(mutag))


def test_embedding_is_trained_with_the_model(mutag, split):
    fitted = ColorFeatures(encoding="embedding", width=5)(mutag, split.train)
    data = fitted.apply(mutag)
    model = fitted.wrap(partial(EGIN, hidden_dim=8, num_layers=2))(data.info)
    assert isinstance(model, ColorEmbedding) and model.name == "EGIN"
    graph, _ = data[0]
    inputs = (graph, graph.ndata["feat"], graph.edata["feat"])
    model(*inputs).sum().backward()
    assert model.embedding.weight.grad.abs().sum() > 0
    assert model.embed(*inputs).shape == (1, 7 + 5 + 2 * 8)


def test_colors_distinguish_bonds():
    """One round of E-WL marks the atoms with two double bonds: their one-hot counts are enough for a linear map."""
    data = bonds(graphs=80)
    colored = ColorFeatures(depth=1)(data, range(80)).apply(data)
    owner = torch.repeat_interleave(torch.arange(80), data.node_offsets.diff())
    counts = torch.zeros(80, colored.info.node_dim).index_add_(0, owner, colored.node_feats)
    plain = torch.zeros(80, data.info.node_dim).index_add_(0, owner, data.node_feats)
    same = (counts[0::2] == counts[1::2]).all(dim=1)
    assert torch.equal(plain[0::2], plain[1::2]) and not same.any()


def test_invalid_options():
    with pytest.raises(
        ConfigError, match="ewl.encoding must be 'onehot', 'embedding' or 'hash', got 'one-hot'"
    ):
        ColorFeatures(encoding="one-hot")
    with pytest.raises(ConfigError, match="ewl.depth must be greater than or equal to 0, got -1"):
        ColorFeatures(depth=-1)
