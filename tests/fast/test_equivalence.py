"""The accelerated path equals the definition: values, gradients and running statistics."""

import copy
import gc
from functools import partial

import pytest
import torch
from odd_graphs import SHAPES, odd_dataset
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from egin_dgl.data import load_tu
from egin_dgl.data.loader import GraphLoader, assemble
from egin_dgl.fast import FastLayer, accelerate, register
from egin_dgl.fast.constants import dataset_constants
from egin_dgl.fast.sparse_sums import BatchSums
from egin_dgl.layers import MLP, EGINConv, EGINEConv, EGINMConv
from egin_dgl.layers.aggregate import sum_neighbors
from egin_dgl.layers.egnn import EGNNCConv
from egin_dgl.layers.mlp import BatchNorm
from egin_dgl.models import EGCN, EGIN, EGINC, EGINE, EGINM, GIN, GINE, GraphClassifier
from egin_dgl.models.dispatch import embed_batch, forward_batch, make_precise_forward, make_train_step
from egin_dgl.tasks import Multiclass
from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.precise_bn import update_bn_stats
from egin_dgl.training.train_epoch import loss_with_gradient

every_model = pytest.mark.parametrize("make", [GIN, EGIN, EGINC, EGINE, EGINM])


def build(make, info, dtype=torch.float64, **options):
    torch.manual_seed(0)
    model = make(info, hidden_dim=8, num_layers=2, dropout=0.0, **options).to(dtype).train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter) if "eps" not in name else 0.7)
    return model


def loss_fn(batch):
    return partial(loss_with_gradient, Multiclass(), labels=batch.labels)


def run(model, batch, path):
    """Logits, gradients and running statistics after one step in training mode, then logits in evaluation mode.

    By the definition, layer by layer with autograd, or by a fused step where there is one.
    """
    fast = path != "definition"
    weights = FlatParameters(model)
    weights.zero_grad()
    torch.manual_seed(1)  # of dropout
    done = make_train_step(model)(batch, loss_fn(batch)) if path == "step" else None
    if done is None:
        logits = forward_batch(model, batch, fast)
        loss = cross_entropy(logits, batch.labels)
        loss.backward()
        done = loss.detach(), logits.detach()
    found = dict(zip(("loss", "logits"), done, strict=True))
    found |= {f"gradient of {name}": p.grad for name, p in model.named_parameters() if p.requires_grad}
    found |= {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        model.eval()
        found["evaluated"] = forward_batch(model, batch, fast)
        found["embedded"] = embed_batch(model, batch, fast)
    return found


def assert_same(make, data, graphs, dtype=torch.float64, tolerance=1e-10, **options):
    assert_same_model(build(make, data.info, dtype, **options), assemble(data, graphs), tolerance)


def assert_same_model(model, batch, tolerance=1e-10):
    definition, *accelerated = (
        run(copy.deepcopy(model).train(), batch, path) for path in ("definition", "layers", "step")
    )
    for found in accelerated:
        assert definition.keys() == found.keys()
        for name, expected in definition.items():
            # Batch normalisation subtracts the mean, and with it any bias before it: its gradient is rounding only.
            torch.testing.assert_close(
                found[name], expected, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
            )


@every_model
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("edges", "learn_eps"), [("types", False), ("real", True), ("symmetric", False)])
def test_odd_graphs(make, shape, edges, learn_eps):
    data = odd_dataset(shape, edges)
    assert_same(make, data, torch.arange(len(data)).flip(0).repeat(2), learn_eps=learn_eps)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("edges", ["types", "real", "symmetric", "zero"])
def test_channels_of_odd_graphs(shape, edges):
    """EGCN, whose channels have no negative entries and whose graphs have self-loops."""
    data = odd_dataset(shape, edges)
    graphs = torch.arange(len(data)).flip(0).repeat(2)
    assert_same(EGCN, data, graphs, norm="none")
    model = build(EGCN, data.info, norm="none")
    assert accelerate(model) is not None
    model.convs[0].normalized = False
    assert accelerate(model) is None


def test_channels_are_those_of_egcn():
    """Another transformation of the graphs, or none, is another model."""
    info = odd_dataset("odd", "types").info
    convs = [EGNNCConv(info.node_dim, 8, normalized=True)]
    assert accelerate(GraphClassifier(info, convs, 8 * (info.edge_dim + 1))) is None

    class Plain(EGCN):
        def transform_graph(self, graph, edge_feats):
            return graph, edge_feats

    assert accelerate(Plain(info)) is None and accelerate(EGCN(info)) is not None


@every_model
def test_zero_edge_features(make):
    data = odd_dataset("odd", "zero")
    assert_same(make, data, torch.arange(len(data)), learn_eps=True)


SETTINGS = ["batch 1 sum", "batch 2 mean", "batch 3 max", "layer 2 sum", "layer 1 max", "none 3 mean"]


@every_model
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings(make, setting):
    norm, mlp_layers, readout = setting.split()
    data = odd_dataset("both ways", "types")
    options = {"norm": norm, "mlp_layers": int(mlp_layers), "readout": readout, "scale_by_size": True}
    assert_same(make, data, torch.arange(len(data)), **options)


@every_model
@pytest.mark.parametrize("mlp_layers", [1, 2])
def test_dropout_inside_mlps(make, mlp_layers):
    data = odd_dataset("both ways")
    assert_same(make, data, torch.arange(len(data)), mlp_dropout=0.5, mlp_layers=mlp_layers)


@pytest.mark.parametrize("edges", ["types", "real"])
@pytest.mark.parametrize("edge_mlp_layers", [1, 3])
def test_edge_mlps_of_any_depth(edges, edge_mlp_layers):
    data = odd_dataset("odd", edges, copies=9)
    assert_same(EGINE, data, torch.arange(len(data)), edge_mlp_layers=edge_mlp_layers)
    assert_same(EGINM, data, torch.arange(len(data)), tuple_mlp_layers=edge_mlp_layers, learn_eps=True)


@every_model
def test_many_distinct_edge_vectors(make):
    data = odd_dataset("odd", "real", copies=9)
    assert dataset_constants(data).edge_type_counts is None
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1))
    assert_same(make, data, order, learn_eps=True)


def freeze_eps(make, info):
    model = build(make, info, learn_eps=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("eps" not in name)
    return model


def load_eps(make, info):
    model = build(make, info)
    model.load_state_dict(build(make, info, learn_eps=True).state_dict())
    return model


@every_model
@pytest.mark.parametrize("fix", [freeze_eps, load_eps])
def test_fixed_nonzero_eps(make, fix):
    data = odd_dataset("odd", "types", copies=9)
    model = fix(make, data.info)
    values = [value.item() for name, value in model.state_dict().items() if name.endswith("eps")]
    assert values == pytest.approx([0.7, 0.7])
    assert_same_model(model, assemble(data, torch.arange(len(data))))


@every_model
def test_a_changed_eps_buffer_is_read_again(make):
    data = odd_dataset()
    batch, model = assemble(data, torch.arange(8)), build(make, data.info)
    for value in (0.0, 0.3, -1.0):
        for name, buffer in model.named_buffers():
            if name.endswith("eps"):
                buffer.fill_(value)
        assert_same_model(model, batch)


def egin(info, dim):
    return EGINConv(MLP(dim + info.edge_dim, 8, 8))


def egin_m(info, dim, norm="none"):
    return EGINMConv(MLP(3, 8, 8), MLP(dim + info.edge_dim, 3, 3, norm=norm))


def egin_e(info, dim, kind=EGINEConv, learn_eps=False):
    return kind(MLP(dim + 3, 8, 8), MLP(info.edge_dim, 3, 3, norm="none"), learn_eps)


class Blind(EGINEConv):
    """Ignores edges."""

    def forward(self, graph, h, e):
        return self.mlp(torch.cat([h + sum_neighbors(graph, h), h.new_zeros(len(h), 3)], dim=1))


class RegisteredBlind(Blind):
    pass


@register(RegisteredBlind)
class FastBlind(FastLayer):
    def edge_part(self, sums: BatchSums):
        return sums.node_feats.new_zeros(len(sums.node_feats), 3)


STACKS = {
    "EGIN-E, EGIN": [egin_e, egin],
    "EGIN, EGIN-E": [egin, egin_e],
    "EGIN-E, EGIN-E-ε": [egin_e, partial(egin_e, learn_eps=True)],
    "EGIN-E, EGIN-M": [egin_e, egin_m],
    "EGIN-M, EGIN": [egin_m, egin],
    "normalised tuples": [egin, partial(egin_m, norm="batch")],
    "subclass": [egin_e, partial(egin_e, kind=Blind)],
    "registered subclass": [egin_e, partial(egin_e, kind=RegisteredBlind)],
    "empty": [],
}


@pytest.mark.parametrize("stack", STACKS)
def test_mixed_layers(stack):
    def make(info, hidden_dim, num_layers, dropout):
        dims = [info.node_dim, hidden_dim]
        convs = [layer(info, dim) for layer, dim in zip(STACKS[stack], dims, strict=False)]
        return GraphClassifier(info, convs, hidden_dim, dropout)

    data = odd_dataset()
    assert_same(make, data, torch.arange(len(data)))
    is_fast = accelerate(build(make, data.info)) is not None
    assert is_fast == (stack not in ("subclass", "empty", "normalised tuples"))


def replace_activation(model):
    model.convs[0].mlp[2] = nn.Tanh()


def extend_mlp(model):
    model.convs[1].mlp.append(BatchNorm(8).double())


def drop_statistics(model):
    model.norms[0] = BatchNorm(8, track_running_stats=False).double()


def replace_head(model):
    model.heads[1] = nn.Sequential(model.heads[1], nn.Tanh())


def share_norm(model):
    model.norms[1] = model.norms[0]


def share_layer(model):
    model.convs.append(model.convs[1])
    model.norms.append(BatchNorm(8).double())
    model.heads.append(nn.Linear(8, 2).double())


def share_mlp(model):
    model.convs.append(EGINConv(model.convs[1].mlp).double())
    model.norms.append(BatchNorm(8).double())
    model.heads.append(nn.Linear(8, 2).double())


SHARED = [share_norm, share_layer, share_mlp]


@pytest.mark.parametrize("change", SHARED)
def test_precise_statistics_of_modules_used_twice(change):
    """They are those of the first use, as by the definition."""
    data, found = odd_dataset(), []
    for fast in (False, True):
        model = build(EGIN, data.info).eval()
        change(model)
        batch = assemble(data, torch.arange(len(data)))
        assert make_precise_forward(model, fast) is None
        update_bn_stats(model, [batch], partial(forward_batch, fast=fast))
        found.append(dict(model.named_buffers()))
    for name, expected in found[0].items():
        torch.testing.assert_close(found[1][name], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("change", [replace_activation, extend_mlp, drop_statistics, replace_head, *SHARED])
def test_modified_modules(change):
    data = odd_dataset()
    model = build(EGIN, data.info)
    change(model)
    assert_same_model(model, assemble(data, torch.arange(len(data))))
    assert (accelerate(model) is None) == (change is share_layer)
    assert accelerate(model) is None or accelerate(model).train_step() is None


@every_model
@pytest.mark.parametrize("name", ["MUTAG", "Cuneiform"])
def test_single_precision_on_real_graphs(make, name):
    data = load_tu(name)
    assert_same(make, data, torch.arange(32), torch.float32, tolerance=2e-3)


class Doubled(EGIN):
    def forward(self, graph, node_feats, edge_feats):
        return 2 * super().forward(graph, node_feats, edge_feats)


@pytest.mark.parametrize("make", [Doubled, GINE, EGIN])
def test_only_registered_unmodified_models_are_accelerated(make):
    data = odd_dataset()
    batch = assemble(data, torch.arange(4))
    model = build(make, data.info).eval()
    expected = model(batch.graph, batch.node_feats, batch.edge_feats)
    torch.testing.assert_close(forward_batch(model, batch), expected, rtol=1e-10, atol=1e-10)
    new_batch = assemble(data, torch.arange(4))
    forward_batch(model, new_batch)
    assert ("graph" in vars(new_batch)) == (make is not EGIN)  # the accelerated path makes no DGL graph
    forward_batch(model, new_batch, fast=False)
    assert "graph" in vars(new_batch)


class Plain(nn.Module):
    """A model that knows nothing of this package."""

    def __init__(self, info):
        super().__init__()
        self.linear = nn.Linear(info.node_dim, info.classes, dtype=torch.float64)

    def forward(self, graph, node_feats, edge_feats):
        graphs = torch.arange(graph.batch_size).repeat_interleave(graph.batch_num_nodes())
        logits = self.linear(node_feats)
        return logits.new_zeros(graph.batch_size, logits.shape[1]).index_add(0, graphs, logits)


class PlainEmbedding(Plain):
    def embed(self, graph, node_feats, edge_feats):
        return 3 * self(graph, node_feats, edge_feats)


def test_user_models_are_computed_by_their_definition():
    data = odd_dataset()
    batch, model = assemble(data, torch.arange(4)), PlainEmbedding(data.info)
    logits = model(batch.graph, batch.node_feats, batch.edge_feats)
    assert torch.equal(forward_batch(model, batch), logits)
    assert torch.equal(embed_batch(model, batch), 3 * logits)
    assert make_train_step(model)(batch, loss_fn(batch)) is None
    with pytest.raises(AttributeError, match="Plain has no embeddings: define embed"):
        embed_batch(Plain(data.info), batch)


@pytest.mark.parametrize("place", ["", "convs.1", "readout", "norms.0", "convs.0.mlp.0"])
@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_are_called(place, kind):
    data, calls = odd_dataset(), []
    batch, model = assemble(data, torch.arange(4)), build(EGIN, data.info)
    getattr(model.get_submodule(place), kind)(lambda *call: calls.append(1))
    forward_batch(model, batch)
    assert calls
    assert make_train_step(model)(batch, loss_fn(batch)) is None


def test_gradient_hooks_are_called():
    data = odd_dataset()
    batch = assemble(data, torch.arange(4))
    for kind in ("register_hook", "register_post_accumulate_grad_hook"):
        model = build(EGIN, data.info)
        getattr(model.heads[0].weight, kind)(lambda grad: None)
        assert make_train_step(model)(batch, loss_fn(batch)) is None


@every_model
def test_autocast_takes_the_definition(make):
    data = odd_dataset(dtype=torch.float32)
    batch = assemble(data, torch.arange(8))
    model = build(make, data.info, torch.float32).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(
            forward_batch(model, batch), model(batch.graph, batch.node_feats, batch.edge_feats)
        )


def test_dropout_drops_logits_of_a_depth_and_keeps_their_mean():
    data = odd_dataset()
    model, batch = build(EGIN, data.info), assemble(data, torch.arange(8))
    for norm in filter(lambda module: isinstance(module, nn.BatchNorm1d), model.modules()):
        norm.momentum = 0.0
    kept = make_train_step(model)(batch, loss_fn(batch))[1]
    model.dropout.p = 0.5
    torch.manual_seed(0)
    step = make_train_step(model)
    drawn = torch.stack([step(batch, loss_fn(batch))[1] for _ in range(400)])
    assert len(drawn[:, 0, 0].unique()) == 2 ** len(model.heads)
    error = drawn.std(0) / 400**0.5
    assert ((drawn.mean(0) - kept).abs() < 5 * error + 1e-9).all()


class SyncRecorder(TorchDispatchMode):
    """Records operations that wait for a GPU, or copy from the host."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, kwargs = function.overloadpacket.__name__, kwargs or {}
        waits = name in ("_local_scalar_dense", "nonzero", "masked_select")
        moves = name == "_to_copy" and kwargs.get("device") is not None
        indices = args[1] if name.startswith("index") and isinstance(args[1], (list, tuple)) else ()
        if waits or moves or any(index is not None and index.dtype == torch.bool for index in indices):
            self.seen.add(name)
        return function(*args, **kwargs)


@every_model
@pytest.mark.parametrize("edges", ["types", "real"])
def test_a_training_step_does_not_wait_for_the_device(make, edges):
    data = odd_dataset("odd", edges, copies=9, dtype=torch.float32)
    model = build(make, data.info, torch.float32)
    loader, generator = GraphLoader(data, range(len(data)), 16), torch.Generator().manual_seed(0)
    step = make_train_step(model)

    def train_one_epoch():
        for batch in loader.shuffled(generator):
            assert step(batch, loss_fn(batch))

    train_one_epoch()  # computes the constants of the dataset
    with SyncRecorder() as recorder:
        train_one_epoch()
    assert recorder.seen == set()


@every_model
@pytest.mark.parametrize(("edges", "learn_eps"), [("types", False), ("real", True)])
def test_a_step_function_serves_many_batches(make, edges, learn_eps):
    """Nothing of a batch remains for the next, and updated weights are used."""
    data = odd_dataset("odd", edges, copies=3)
    model = build(make, data.info, learn_eps=learn_eps)
    twin, step = copy.deepcopy(model), make_train_step(model)
    batches = list(GraphLoader(data, range(len(data)), 5).shuffled(torch.Generator().manual_seed(0)))
    assert len(batches) > 2
    for batch in batches:
        for each in (model, twin):
            each.zero_grad()
        _, logits = step(batch, loss_fn(batch))
        expected = twin(batch.graph, batch.node_feats, batch.edge_feats)
        cross_entropy(expected, batch.labels).backward()
        torch.testing.assert_close(logits, expected.detach(), rtol=1e-9, atol=1e-9)
        with torch.no_grad():
            for weight, other in zip(model.parameters(), twin.parameters(), strict=True):
                gradient = torch.zeros_like(other) if weight.grad is None else weight.grad
                torch.testing.assert_close(gradient, other.grad, rtol=1e-9, atol=1e-9)
                for each in (weight, other):
                    each.sub_(0.1 * other.grad)


@pytest.mark.parametrize("shape", ["odd", "near complete"])
def test_batches_and_datasets_are_freed_without_garbage_collection(shape):
    from egin_dgl.fast import constants, sparse_matrix, sparse_sums

    caches = [constants._CONSTANTS, sparse_matrix._GATHERED, sparse_sums._SUMS]
    gc.collect()
    before = [len(cache) for cache in caches]
    data = odd_dataset(shape)
    batch, model = assemble(data, torch.arange(len(data))), build(EGINC, data.info)
    forward_batch(model, batch).sum().backward()
    forward_batch(build(EGIN, data.info), batch).sum().backward()
    gc.disable()
    try:
        del batch, data, model
        assert [len(cache) for cache in caches] == before
    finally:
        gc.enable()
