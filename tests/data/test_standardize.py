"""Standardization is fitted on training graphs and changes continuous columns only."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from running import settings_of

from egin_dgl.cli.experiment import make_experiment
from egin_dgl.data import Standardizer, bonds, load_tu
from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.prepare import from_arrays
from egin_dgl.errors import ConfigError


@pytest.fixture
def cuneiform(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path))
    return load_tu("Cuneiform", url=None)  # 3 node and 2 edge attributes


def rows(offsets, graphs):
    return torch.cat([torch.arange(offsets[i], offsets[i + 1]) for i in graphs])


def test_training_columns_get_mean_0_and_std_1(cuneiform):
    train = list(range(0, 267, 2))
    scaled = Standardizer.fit(cuneiform, train).apply(cuneiform)
    for feats, offsets, count in (
        (scaled.node_feats, scaled.node_offsets, 3),
        (scaled.edge_feats, scaled.edge_offsets, 2),
    ):
        seen = feats[rows(offsets, train), :count].double()
        assert torch.allclose(seen.mean(0), torch.zeros(count).double(), atol=1e-4)
        assert torch.allclose(seen.std(0, correction=0), torch.ones(count).double(), atol=1e-4)
    assert torch.equal(scaled.node_feats[:, 3:], cuneiform.node_feats[:, 3:])
    assert torch.equal(scaled.edge_feats[:, 2:], cuneiform.edge_feats[:, 2:])
    assert scaled.info == cuneiform.info


def test_fit_ignores_test_graphs(cuneiform):
    train, test = list(range(200)), list(range(200, 267))
    node_feats, edge_feats = cuneiform.node_feats.clone(), cuneiform.edge_feats.clone()
    node_feats[rows(cuneiform.node_offsets, test)] += 1000
    edge_feats[rows(cuneiform.edge_offsets, test)] -= 1000
    shifted = cuneiform.with_features(node_feats, edge_feats)
    assert Standardizer.fit(shifted, train) == Standardizer.fit(cuneiform, torch.tensor(train))
    assert Standardizer.fit(shifted, test) != Standardizer.fit(cuneiform, test)


def test_apply_does_not_modify_its_input(cuneiform):
    before = cuneiform.node_feats.clone()
    Standardizer.fit(cuneiform, [0, 1, 2]).apply(cuneiform)
    assert torch.equal(cuneiform.node_feats, before)


def test_dict_round_trip_through_json(cuneiform):
    standardizer = Standardizer.fit(cuneiform, range(267))
    again = Standardizer.from_dict(json.loads(json.dumps(standardizer.to_dict())))
    assert again == standardizer
    assert torch.equal(again.apply(cuneiform).node_feats, standardizer.apply(cuneiform).node_feats)


def test_constant_columns_and_empty_training_sets_divide_by_1():
    arrays = GraphArrays(
        node_graph=np.repeat([0, 1], 50),
        src=np.array([50, 51]),
        dst=np.array([51, 50]),
        graphs=2,
        targets=np.array([[0], [1]], dtype=object),
        nodes=RawColumns(attributes=np.full((100, 2), [0.1, 0.0])),
        edges=RawColumns(attributes=np.array([[1.0], [3.0]])),
    )
    dataset = from_arrays(arrays, "constant")
    standardizer = Standardizer.fit(dataset, [0])  # graph 0 has no edge
    assert standardizer.node_std == (1.0, 1.0)
    assert (standardizer.edge_mean, standardizer.edge_std) == ((0.0,), (1.0,))
    scaled = standardizer.apply(dataset)
    assert scaled.node_feats.abs().max() < 1e-6 and torch.equal(scaled.edge_feats, dataset.edge_feats)


def test_no_continuous_columns():
    dataset = bonds(graphs=8)
    assert Standardizer.fit(dataset, [0, 1]) == Standardizer()
    assert Standardizer().apply(dataset) is dataset
    assert Standardizer.from_dict(Standardizer().to_dict()) == Standardizer()


def test_index_out_of_range():
    with pytest.raises(IndexError):
        Standardizer.fit(replace(bonds(graphs=8)), [8])


def test_columns_of_zeros_and_ones_are_left_unchanged(cuneiform):
    node_feats = cuneiform.node_feats.clone()
    node_feats[:, 1] = (node_feats[:, 1] > node_feats[:, 1].median()).float()
    dataset = cuneiform.with_features(node_feats)
    scaled = Standardizer.fit(dataset, range(200)).apply(dataset)
    assert torch.equal(scaled.node_feats[:, 1], node_feats[:, 1])
    assert not torch.equal(scaled.node_feats[:, 0], node_feats[:, 0])


@pytest.mark.parametrize(
    ("options", "standardized"),
    [
        (("dataset=cuneiform",), True),
        (("dataset=cuneiform", "trainer.standardize=false"), False),
        (("dataset=cuneiform", "trainer=paper"), False),
        (("dataset=bonds", "dataset.graphs=8"), False),
        (("dataset=bonds", "dataset.graphs=8", "trainer.standardize=true"), True),
    ],
)
def test_attributes_are_standardized_where_a_dataset_has_any(options, standardized):
    recipe = make_experiment(settings_of(*options)).recipe
    assert list(recipe.transforms) == [Standardizer.fit] * standardized


def test_kernels_take_attributes_as_they_are():
    kernel = ("dataset=cuneiform", "model=ewl_kernel")
    make_experiment(settings_of(*kernel))
    with pytest.raises(ConfigError, match="trainer.standardize=auto"):
        make_experiment(settings_of(*kernel, "trainer.standardize=true"))
