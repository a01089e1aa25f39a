"""Precise BN, and the Evaluator that uses it."""

import copy
import math
import threading

import numpy as np
import pytest
import torch
from torch import nn

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.loader import GraphLoader
from egin_dgl.data.splits import Split
from egin_dgl.fast import precise_pass
from egin_dgl.models import EGIN, EGINC, EGINE, EGINM, GIN, PNA, GatedGCN
from egin_dgl.tasks import Multiclass
from egin_dgl.training import evaluator, precise_bn
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.evaluator import Evaluator, compute_logits
from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.precise_bn import Moments, bounded_batches, sample_graphs, update_bn_stats

OPTIONS = TrainerOptions()
MODELS = {"EGIN-E": EGINE, "EGIN-M": EGINM, "GatedGCN": GatedGCN, "PNA": PNA}


def call(model, batch):
    return compute_logits(model, batch, OPTIONS)


@pytest.fixture(scope="module")
def data():
    return bonds(graphs=60)


def model_of(data, kind):
    """With scales and offsets of every BatchNorm away from 1 and 0."""
    torch.manual_seed(0)
    model = MODELS[kind](data.info, hidden_dim=8, num_layers=3).double()
    for weight in model.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    return model


def as_double(data):
    return data.with_features(data.node_feats.double(), data.edge_feats.double())


def statistics(model):
    return torch.cat([b.flatten() for name, b in model.named_buffers() if "running" in name])


@pytest.mark.parametrize("kind", MODELS)
def test_statistics_are_independent_of_batch_size_and_order(data, kind):
    double = as_double(data)
    found = []
    for graphs, size in ((range(60), 60), (range(60), 7), (range(59, -1, -1), 13)):
        model = model_of(double, kind)
        update_bn_stats(model, GraphLoader(double, graphs, size), call)
        found.append(statistics(model))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", MODELS)
def test_logits_equal_a_full_batch_in_training_mode(data, kind):
    """In training mode each layer normalizes by the rows of the batch, here all of them."""
    double = as_double(data)
    model = model_of(double, kind)
    whole = next(iter(GraphLoader(double, range(60), 60)))
    training = copy.deepcopy(model).train()
    for module in training.modules():
        if isinstance(module, nn.Dropout):
            module.eval()
    expected = call(training, whole)
    update_bn_stats(model, GraphLoader(double, range(60), 9), call)
    torch.testing.assert_close(call(model, whole), expected, rtol=1e-4, atol=1e-5)


def test_running_averages_lag_behind(numbers, data):
    """After a few steps the running averages give other logits."""
    model = model_of(as_double(data), "EGIN-E").float()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = GraphLoader(data, range(60), 10)
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(call(model, batch), batch.labels).backward()
        optimizer.step()
    whole = next(iter(GraphLoader(data, range(60), 60)))
    lagging = call(model.eval(), whole)
    update_bn_stats(model, loader, call)
    assert (call(model, whole) - lagging).abs().max() > 0.1


def test_moments_of_chunks_equal_those_of_all_rows():
    rows = 1e6 + torch.randn(1000, 3, dtype=torch.float64)
    moments = Moments()
    for part in rows.split([1, 499, 0, 500]):
        moments.add(part)
    torch.testing.assert_close(moments.mean, rows.mean(0), rtol=1e-14, atol=0)
    torch.testing.assert_close(moments.squares / moments.count, rows.var(0, correction=0), rtol=1e-7, atol=0)


def test_unused_layer_keeps_its_statistics(data):
    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.BatchNorm1d(data.info.node_dim), nn.BatchNorm1d(3)

        def forward(self, graph, node_feats, edge_feats):
            return self.used(node_feats)

    for size in (60, 10):
        model = Sometimes()
        update_bn_stats(model, GraphLoader(data, range(60), size), call)
        torch.testing.assert_close(model.used.running_mean, data.node_feats.mean(0))
        assert not model.unused.running_mean.any()


def test_each_batch_is_passed_once(data):
    model, passed = model_of(as_double(data), "PNA"), []
    update_bn_stats(
        model, GraphLoader(as_double(data), range(60), 7), lambda *pair: passed.append(pair[1]) or call(*pair)
    )
    assert len(passed) == len(set(passed)) == 9


def test_an_error_in_a_pass_ends_all_of_them(data):
    model, threads = model_of(as_double(data), "EGIN-E"), threading.active_count()

    def fail_at_the_end(model, batch):
        call(model, batch)
        raise ArithmeticError("at the end of a pass")

    with pytest.raises(ArithmeticError, match="at the end of a pass"):
        update_bn_stats(model, GraphLoader(as_double(data), range(60), 7), fail_at_the_end)
    assert threading.active_count() == threads
    assert not any(module._forward_pre_hooks for module in model.modules())


def rows_of(batches):
    return [batch.graph.num_nodes() + batch.graph.num_edges() for batch in batches]


def test_large_set_is_batched_or_sampled(data, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    assert len(bounded_batches(data, range(60))) == 1
    monkeypatch.setattr(precise_bn, "MAX_ROWS", 300)
    batches = bounded_batches(data, range(60))
    assert len(batches) == len(list(batches)) > 3 and max(rows_of(batches)) <= 300
    assert torch.cat([batch.graphs for batch in batches]).tolist() == list(range(60))
    (sample,) = bounded_batches(data, sample_graphs(data, range(60), 300, generator))
    assert 200 < rows_of([sample])[0] <= 300
    assert sample_graphs(data, range(60), 10**6, generator).tolist() == list(range(60))


@pytest.mark.parametrize("sample", [False, True])
def test_batches_are_bounded_when_graphs_are_sorted_by_size(monkeypatch, sample):
    def batched(graphs):
        generator = torch.Generator().manual_seed(0)
        limit = precise_bn.MAX_ROWS
        chosen = sample_graphs(mutag, graphs, limit, generator) if sample else graphs
        return bounded_batches(mutag, chosen)

    monkeypatch.setattr(precise_bn, "MAX_ROWS", 300)
    mutag = load_tu("MUTAG")
    sizes = torch.tensor(rows_of(GraphLoader(mutag, range(188), 1)))
    for order in (sizes.argsort(), sizes.argsort(descending=True)):
        assert max(rows_of(batched(order))) <= 300
    monkeypatch.setattr(precise_bn, "MAX_ROWS", 1)
    assert len(batched(range(188))) == (1 if sample else 188)


@pytest.mark.parametrize("limit", [10_000, 7])  # of rows: one chunk, or many
@pytest.mark.parametrize(
    ("kind", "options", "empty"),
    [
        (EGIN, {}, "nothing"),
        (EGINC, {"learn_eps": True, "mlp_dropout": 0.3}, "validation"),
        (EGINE, {"readout": "mean", "mlp_layers": 3}, "test"),
        (EGINE, {"learn_eps": True}, "nothing"),
        (EGINM, {"learn_eps": True}, "test"),
        (GIN, {}, "validation"),
    ],
)
def test_one_pass_equals_evaluation_by_split(data, kind, options, empty, limit, monkeypatch):
    monkeypatch.setattr(precise_pass, "CHUNK_ROWS", limit)
    double = as_double(data)
    torch.manual_seed(0)
    model = kind(double.info, hidden_dim=8, num_layers=3, **options).double()
    for weight in model.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    parts = {"validation": np.arange(5, 25), "test": np.r_[0:5, 25:30]} | {empty: np.arange(0)}
    split = Split(np.arange(30, 60), parts["validation"], parts["test"])
    ema = ModelEma(model, FlatParameters(model), None, precise_bn=True)
    evaluator = Evaluator(double, split, OPTIONS, Multiclass(), ema, torch.Generator(), use_test=True)
    one_pass = evaluator.evaluate_in_one_pass()
    found = statistics(one_pass.model)
    expected = evaluator.evaluate_by_split()
    torch.testing.assert_close(found, statistics(expected.model), rtol=1e-10, atol=1e-12)
    for part in ("validation", "test"):
        one, other = getattr(one_pass, part), getattr(expected, part)
        assert math.isnan(one.loss) == math.isnan(other.loss) == (part == empty)
        if part != empty:
            torch.testing.assert_close(one.logits, other.logits, check_dtype=False, rtol=1e-5, atol=1e-5)
            assert one.score == other.score and one.loss == pytest.approx(other.loss)


def test_one_pass_only_where_supported(data, monkeypatch):
    split = Split(np.arange(30), np.arange(30, 45), np.arange(45, 60))

    def in_one_pass(model, **options):
        options = TrainerOptions(**options)
        ema = ModelEma(model, FlatParameters(model), 0.9, options.bn_statistics != "running")
        evaluator = Evaluator(data, split, options, Multiclass(), ema, torch.Generator(), use_test=True)
        assert len(evaluator.evaluate(1).test.logits) == 15
        return evaluator.evaluate_in_one_pass() is not None

    assert in_one_pass(EGINE(data.info))
    assert not in_one_pass(EGINE(data.info, norm="layer"))
    assert not in_one_pass(PNA(data.info))
    assert not in_one_pass(EGINE(data.info), precision="bf16")
    assert not in_one_pass(EGINE(data.info), bn_statistics="running")
    assert in_one_pass(EGINE(data.info), bn_statistics="sample")
    monkeypatch.setattr(evaluator, "MAX_PASS_ROWS", 300)
    assert in_one_pass(EGINE(data.info))
