"""Batch normalisation's statistics are those of the training rows, at the weights that are looked at."""

import copy

import numpy as np
import pytest
import torch
from egin_dgl.training.passes import compute_logits, precise_bn_batches
from torch import nn

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.loader import GraphLoader
from egin_dgl.data.splits import Split
from egin_dgl.models import EGIN, EGINC, EGINE, GIN, PNA, GatedGCN
from egin_dgl.training import passes
from egin_dgl.training.ema import ModelEma
from egin_dgl.training.evaluator import Evaluator
from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.precise_bn import Moments, measure

OPTIONS = TrainerOptions()
MODELS = {"EGIN-E": EGINE, "GatedGCN": GatedGCN, "PNA": PNA}


def call(model, batch):
    return compute_logits(model, batch, OPTIONS)


@pytest.fixture(scope="module")
def data():
    return bonds(graphs=60)


def model_of(data, kind):
    """With weights that no default hides: scales and offsets of every normalisation are away from 1 and 0."""
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
def test_they_depend_on_neither_the_size_nor_the_order_of_batches(data, kind):
    double = as_double(data)
    found = []
    for graphs, size in ((range(60), 60), (range(60), 7), (range(59, -1, -1), 13), (range(60), 1)):
        model = model_of(double, kind)
        measure(model, GraphLoader(double, graphs, size), call)
        found.append(statistics(model))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", MODELS)
def test_a_pass_over_all_rows_in_training_mode_gives_the_same_scores(data, kind):
    """There each layer normalises by the very rows it sees: what exact statistics must reproduce."""
    double = as_double(data)
    model = model_of(double, kind)
    whole = next(iter(GraphLoader(double, range(60), 60)))
    training = copy.deepcopy(model).train()
    for module in training.modules():
        if isinstance(module, nn.Dropout):
            module.eval()
    expected = call(training, whole)
    measure(model, GraphLoader(double, range(60), 9), call)
    torch.testing.assert_close(call(model, whole), expected, rtol=1e-4, atol=1e-5)


def test_running_averages_lag_far_behind(numbers, data):
    """What exactness is for: after a few steps the running averages give other scores."""
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
    measure(model, loader, call)
    assert (call(model, whole) - lagging).abs().max() > 0.1


def test_moments_of_parts_are_those_of_the_whole():
    rows = 1e6 + torch.randn(1000, 3, dtype=torch.float64)
    moments = Moments()
    for part in rows.split([1, 499, 0, 500]):
        moments.add(part)
    torch.testing.assert_close(moments.mean, rows.mean(0), rtol=1e-14, atol=0)
    torch.testing.assert_close(moments.squares / moments.count, rows.var(0, correction=0), rtol=1e-7, atol=0)


def test_a_layer_that_is_never_reached_keeps_what_it_has(data):
    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.BatchNorm1d(data.info.node_dim), nn.BatchNorm1d(3)

        def forward(self, graph, node_feats, edge_feats):
            return self.used(node_feats)

    for size in (60, 10):
        model = Sometimes()
        measure(model, GraphLoader(data, range(60), size), call)
        torch.testing.assert_close(model.used.running_mean, data.node_feats.mean(0))
        assert not model.unused.running_mean.any()


def rows_of(batches):
    return [batch.graph.num_nodes() + batch.graph.num_edges() for batch in batches]


def test_a_large_part_is_taken_in_batches_or_sampled(data, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    assert len(precise_bn_batches(data, range(60), False, generator)) == 1
    monkeypatch.setattr(passes, "MOST_ROWS", 300)
    batches = precise_bn_batches(data, range(60), False, generator)
    assert len(batches) == len(list(batches)) > 3 and max(rows_of(batches)) <= 300
    assert torch.cat([batch.graphs for batch in batches]).tolist() == list(range(60))
    (sample,) = precise_bn_batches(data, range(60), True, generator)
    assert 200 < rows_of([sample])[0] <= 300


@pytest.mark.parametrize("sample", [False, True])
def test_memory_is_bounded_by_the_largest_graph_where_sizes_differ(data, monkeypatch, sample):
    """Sorted by size, graphs at one end would fill batches many times as large as the mean tells."""
    monkeypatch.setattr(passes, "MOST_ROWS", 300)
    mutag = load_tu("MUTAG")
    sizes = torch.tensor(rows_of(GraphLoader(mutag, range(188), 1)))
    for order in (sizes.argsort(), sizes.argsort(descending=True)):
        batches = precise_bn_batches(mutag, order, sample, torch.Generator().manual_seed(0))
        assert max(rows_of(batches)) <= 300
    monkeypatch.setattr(passes, "MOST_ROWS", 1)
    assert len(precise_bn_batches(mutag, range(188), sample)) == (1 if sample else 188)


@pytest.mark.parametrize("empty", ["nothing", "validation", "test"])
@pytest.mark.parametrize("kind", [EGIN, EGINC, EGINE, GIN])
@pytest.mark.parametrize(
    "options", [{}, {"learn_eps": True, "mlp_dropout": 0.3}, {"readout": "mean", "mlp_layers": 3}]
)
def test_one_pass_over_all_parts_measures_and_answers_alike(data, kind, options, empty):
    """Statistics of the training rows alone, and the scores that a model with these statistics gives."""
    double = as_double(data)
    torch.manual_seed(0)
    model = kind(double.info, hidden_dim=8, num_layers=3, **options).double()
    for weight in model.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    parts = {"validation": np.arange(5, 25), "test": np.r_[0:5, 25:30]} | {empty: np.arange(0)}
    split = Split(np.arange(30, 60), parts["validation"], parts["test"])
    looking = Evaluator(double, split, OPTIONS, torch.Generator(), read_test=True)
    evaluated = ModelEma(model, FlatParameters(model), None, measured=True)
    at_once = looking.in_one_pass(evaluated)
    found = statistics(at_once.model)
    looking.whole = None
    expected = looking.look(evaluated)
    torch.testing.assert_close(found, statistics(expected.model), rtol=1e-10, atol=1e-12)
    for part in ("validation", "test"):
        one, other = getattr(at_once, part), getattr(expected, part)
        assert (one is None) == (other is None) == (part == empty)
        if one is not None:
            torch.testing.assert_close(one.logits, other.logits, check_dtype=False, rtol=1e-5, atol=1e-5)
            assert one.accuracy == other.accuracy and one.loss == pytest.approx(other.loss)


def test_what_one_pass_cannot_do_is_left_to_several(data, monkeypatch):
    """Other normalisations and models, other precisions, parts that are too large."""
    split = Split(np.arange(30), np.arange(30, 45), np.arange(45, 60))

    def in_one_pass(model, **options):
        options = TrainerOptions(**options)
        evaluated = ModelEma(model, FlatParameters(model), 0.9, options.bn_statistics != "running")
        looking = Evaluator(data, split, options, torch.Generator(), read_test=True)
        assert looking.look(evaluated).test is not None
        return looking.whole is not None and looking.in_one_pass(evaluated) is not None

    assert in_one_pass(EGINE(data.info))
    assert not in_one_pass(EGINE(data.info, norm="layer"))
    assert not in_one_pass(PNA(data.info))
    assert not in_one_pass(EGINE(data.info), precision="bf16")
    assert not in_one_pass(EGINE(data.info), bn_statistics="sample")
    monkeypatch.setattr(passes, "MOST_ROWS", 300)
    assert not in_one_pass(EGINE(data.info))
