"""Nodes of the same E-WL colour have the same features: a row for each colour says as much as one for each node."""

import pytest
import torch
from odd_graphs import SHAPES, odd_dataset

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.loader import assemble
from egin_dgl.models import EGIN, EGINC, EGINE, GIN, distinct

FAMILY = pytest.mark.parametrize("make", [GIN, EGIN, EGINC, EGINE])


def with_few_kinds_of_nodes(data):
    kinds = torch.eye(3)[torch.arange(len(data.node_feats)) % 2].to(data.edge_feats.dtype)
    return data.with_features(kinds, data.edge_feats)


def measured(make, data, order, rows, num_layers=3, **options):
    """Scores and statistics by all rows and by the distinct ones, and how many these are."""
    batch = assemble(data, order)
    torch.manual_seed(0)
    model = make(data.info, hidden_dim=8, num_layers=num_layers, **options).to(data.node_feats.dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter) if "eps" not in name else 0.7)
    found = []
    for worth in (0.0, 1.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(distinct, "WORTH", worth)
            batch._made.clear()
            scores = model.measure_on(batch, rows)
            fewer = distinct.rows_by_color(batch, num_layers, rows)
        found.append([scores, *(buffer.clone() for buffer in model.buffers())])
    return found, fewer


@FAMILY
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("edges", ["types", "zero", "symmetric"])
@pytest.mark.parametrize("options", [{}, {"learn_eps": True}, {"readout": "mean", "mlp_layers": 3}])
def test_odd_graphs(make, shape, edges, options):
    data = with_few_kinds_of_nodes(odd_dataset(shape, edges, copies=3))
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    rows = int(data.node_offsets.diff()[order[: len(order) // 2]].sum())
    (all_rows, fewer_rows), fewer = measured(make, data, order, rows, **options)
    assert fewer is not None and len(fewer.depths[0].nodes) == 2
    for expected, found in zip(all_rows, fewer_rows, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@FAMILY
@pytest.mark.parametrize(
    "data", [lambda: load_tu("MUTAG"), lambda: bonds(graphs=200)], ids=["MUTAG", "bonds"]
)
def test_single_precision(make, data):
    data = data()
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    (all_rows, fewer_rows), fewer = measured(make, data, order, len(data.node_feats) // 2)
    assert fewer is not None
    for expected, found in zip(all_rows, fewer_rows, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_they_are_the_colours_of_refinement():
    """In number, by depth; the nodes of a row have one colour and others have others."""
    data = load_tu("MUTAG")
    batch = assemble(data, torch.arange(len(data)))
    found = distinct.rows_by_color(batch, 4, len(batch.node_feats))
    assert [len(depth.nodes) for depth in found.depths] == [7, 64, 277, 796, 1453]
    for depth in found.depths:
        assert torch.equal(depth.row[depth.nodes], torch.arange(len(depth.nodes), dtype=torch.int32))
        assert depth.shares.sum() == pytest.approx(1)


def test_where_features_tell_nodes_apart_all_rows_are_computed():
    data = odd_dataset("odd", "types", copies=3)  # with real node features
    batch = assemble(data, torch.arange(len(data)))
    assert distinct.rows_by_color(batch, 3, len(batch.node_feats)) is None


def test_a_value_beyond_all_numbers_outside_the_measured_rows_stays_there():
    data = with_few_kinds_of_nodes(odd_dataset("odd", "types", copies=3))
    feats = data.node_feats.clone()
    feats[data.node_offsets[-2] :] = torch.inf  # the last graph
    data = data.with_features(feats, data.edge_feats)
    rows = int(data.node_offsets[-2])
    (_, (scores, *statistics)), fewer = measured(EGIN, data, torch.arange(len(data)), rows)
    assert fewer is not None
    assert scores[:-1].isfinite().all() and all(part.isfinite().all() for part in statistics)
