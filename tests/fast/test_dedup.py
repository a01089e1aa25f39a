"""Nodes of the same E-WL color have the same features: computing one row per color changes nothing."""

import pytest
import torch
from odd_graphs import SHAPES, odd_dataset

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.loader import assemble
from egin_dgl.fast import accelerate, dedup
from egin_dgl.fast.sparse_sums import batch_sums
from egin_dgl.models import EGIN, EGINC, EGINE, EGINM, GIN

every_model = pytest.mark.parametrize("make", [GIN, EGIN, EGINC, EGINE, EGINM])


def with_two_node_types(data):
    types = torch.eye(3)[torch.arange(len(data.node_feats)) % 2].to(data.edge_feats.dtype)
    return data.with_features(types, data.edge_feats)


def compute(make, data, order, num_train, num_layers=3, **options):
    """Logits and statistics of the first graphs by all rows and by the distinct ones, and the distinct rows."""
    torch.manual_seed(0)
    model = make(data.info, hidden_dim=8, num_layers=num_layers, **options).to(data.node_feats.dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter) if "eps" not in name else 0.7)
    found = []
    for share in (0.0, 1.0):
        train, batch = assemble(data, order[:num_train]), assemble(data, order)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dedup, "MAX_SHARE", share)
            (logits,) = accelerate(model).precise_forward()(train, [batch])
            rows = dedup.find_distinct_rows(batch_sums(batch), num_layers)
        found.append([logits, *(buffer.clone() for buffer in model.buffers())])
    return found, rows


OPTIONS = [("types", {}), ("zero", {"learn_eps": True}), ("symmetric", {"readout": "mean", "mlp_layers": 3})]


@every_model
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("edges", "options"), OPTIONS)
def test_odd_graphs(make, shape, edges, options):
    data = with_two_node_types(odd_dataset(shape, edges, copies=3))
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    (all_rows, distinct), rows = compute(make, data, order, len(order) // 2, **options)
    assert rows is not None and len(rows[0].nodes) == 2
    for expected, found in zip(all_rows, distinct, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@every_model
@pytest.mark.parametrize(
    "load", [lambda: load_tu("MUTAG"), lambda: bonds(graphs=200)], ids=["MUTAG", "bonds"]
)
def test_single_precision(make, load):
    data = load()
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    (all_rows, distinct), rows = compute(make, data, order, len(data) // 2)
    assert rows is not None
    for expected, found in zip(all_rows, distinct, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_distinct_rows_are_the_colors_of_refinement():
    data = load_tu("MUTAG")
    batch = assemble(data, torch.arange(len(data)))
    found = dedup.find_distinct_rows(batch_sums(batch), 4)
    assert [len(depth.nodes) for depth in found] == [7, 64, 277, 796, 1453]
    for depth in found:
        assert torch.equal(depth.row[depth.nodes], torch.arange(len(depth.nodes), dtype=torch.int32))
        assert depth.shares.sum() == pytest.approx(1)


def test_all_rows_are_computed_where_features_distinguish_nodes():
    data = odd_dataset("odd", "types", copies=3)  # real node features
    batch = assemble(data, torch.arange(len(data)))
    assert dedup.find_distinct_rows(batch_sums(batch), 3) is None


def test_infinite_features_outside_the_statistics_rows_stay_there():
    data = with_two_node_types(odd_dataset("odd", "types", copies=3))
    feats = data.node_feats.clone()
    feats[data.node_offsets[-2] :] = torch.inf  # the last graph
    data = data.with_features(feats, data.edge_feats)
    (_, (logits, *statistics)), rows = compute(EGIN, data, torch.arange(len(data)), len(data) - 1)
    assert rows is not None
    assert logits[:-1].isfinite().all() and all(values.isfinite().all() for values in statistics)
