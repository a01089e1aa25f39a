"""On a batch of the loader a model may take a shorter way: it is the same function, values and gradients."""

import copy
from functools import partial

import dgl
import pytest
import torch
from egin_dgl.layers.sum_layer import Messages
from egin_dgl.layers.sums import closed
from odd_graphs import SHAPES, odd_dataset
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from egin_dgl.data import load_tu
from egin_dgl.data.loader import GraphLoader, assemble
from egin_dgl.layers import MLP, EGINConv, EGINEConv
from egin_dgl.layers.aggregate import sum_neighbors
from egin_dgl.layers.mlp import BatchNorm
from egin_dgl.models import EGIN, EGINC, EGINE, GIN, GINE, GraphClassifier
from egin_dgl.models.model import embeddings_of, logits_of, stepper_of
from egin_dgl.training.flat_parameters import FlatParameters
from egin_dgl.training.train_epoch import cross_entropy_with_gradient

FAMILY = pytest.mark.parametrize("make", [GIN, EGIN, EGINC, EGINE])
EDGES = ("types", "zero", "real", "symmetric")


def build(make, info, dtype=torch.float64, **options):
    torch.manual_seed(0)
    model = make(info, hidden_dim=8, num_layers=2, dropout=0.0, **options).to(dtype).train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter) if "eps" not in name else 0.7)
    return model


def run(model, batch, way):
    """Scores, gradients and running statistics after one step in training mode, then scores in evaluation mode.

    By the definition, by the shorter way on a batch, or by that of training, without autograd where that is possible.
    """
    definition = way == "definition"
    weights = FlatParameters(model)
    weights.zero_grad()
    torch.manual_seed(1)  # of dropout
    inputs = (batch.graph, batch.node_feats, batch.edge_feats)
    loss_of = partial(cross_entropy_with_gradient, labels=batch.labels, weights=None)
    done = stepper_of(model)(batch, loss_of) if way == "step" else None
    if done is None:
        scores = model(*inputs) if definition else logits_of(model, batch)
        loss = cross_entropy(scores, batch.labels)
        loss.backward()
        done = loss.detach(), scores.detach()
    found = dict(zip(("loss", "scores"), done, strict=True))
    found |= {f"gradient of {name}": p.grad for name, p in model.named_parameters() if p.requires_grad}
    found |= {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        model.eval()
        found["evaluated"] = model(*inputs) if definition else logits_of(model, batch)
        found["embedded"] = model.embed(*inputs) if definition else embeddings_of(model, batch)
    return found


def assert_same(make, data, graphs, dtype=torch.float64, tolerance=1e-10, **options):
    assert_same_model(build(make, data.info, dtype, **options), assemble(data, graphs), tolerance)


def assert_same_model(model, batch, tolerance=1e-10):
    definition, *shorter = (
        run(copy.deepcopy(model).train(), batch, way) for way in ("definition", "batch", "step")
    )
    for found in shorter:
        assert definition.keys() == found.keys()
        for name, expected in definition.items():
            # Batch normalisation subtracts the mean, and with it any bias before it: only rounding is left of its gradient.
            torch.testing.assert_close(
                found[name], expected, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
            )


@FAMILY
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("learn_eps", [False, True])
def test_odd_graphs(make, shape, edges, learn_eps):
    data = odd_dataset(shape, edges)
    graphs = torch.arange(len(data)).flip(0).repeat(2)
    assert_same(make, data, graphs, learn_eps=learn_eps)


SETTINGS = ["batch 1 sum", "batch 2 mean", "batch 3 max", "batch 1 mean", "batch 3 sum", "layer 1 max"]
SETTINGS += ["layer 2 sum", "layer 3 mean", "none 1 mean", "none 2 max", "none 3 sum"]


@FAMILY
@pytest.mark.parametrize("edges", ["types", "real"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting(make, edges, setting):
    norm, mlp_layers, readout = setting.split()
    data = odd_dataset("both ways", edges)
    options = {"norm": norm, "mlp_layers": int(mlp_layers), "readout": readout, "scale_by_size": True}
    assert_same(make, data, torch.arange(len(data)), **options)


@FAMILY
@pytest.mark.parametrize("mlp_layers", [1, 2, 3])
def test_dropout_inside_the_mlps(make, mlp_layers):
    data = odd_dataset("both ways")
    assert_same(make, data, torch.arange(len(data)), mlp_dropout=0.5, mlp_layers=mlp_layers)


@pytest.mark.parametrize("edges", ["types", "real"])
@pytest.mark.parametrize("edge_mlp_layers", [1, 3])
def test_edge_mlps_of_any_depth(edges, edge_mlp_layers):
    data = odd_dataset("odd", edges, copies=9)
    assert_same(EGINE, data, torch.arange(len(data)), edge_mlp_layers=edge_mlp_layers)


@FAMILY
@pytest.mark.parametrize("edges", ["real", "symmetric"])
def test_many_distinct_edge_vectors(make, edges):
    data = odd_dataset("odd", edges, copies=9)
    assert data.constants.edge_kinds is None
    assert_same(
        make, data, torch.randperm(len(data), generator=torch.Generator().manual_seed(1)), learn_eps=True
    )


def frozen(make, info):
    model = build(make, info, learn_eps=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("eps" not in name)
    return model


def loaded(make, info):
    model = build(make, info)
    model.load_state_dict(build(make, info, learn_eps=True).state_dict())
    return model


@FAMILY
@pytest.mark.parametrize("edges", ["types", "real"])
@pytest.mark.parametrize("fix", [frozen, loaded])
def test_a_fixed_epsilon_that_is_not_zero(make, edges, fix):
    data = odd_dataset("odd", edges, copies=9)
    model = fix(make, data.info)
    values = [value.item() for name, value in model.state_dict().items() if name.endswith("eps")]
    assert values == pytest.approx([0.7, 0.7])
    assert_same_model(model, assemble(data, torch.arange(len(data))))


@FAMILY
def test_a_fixed_epsilon_is_looked_at_again_when_it_changes(make):
    data = odd_dataset()
    batch, model = assemble(data, torch.arange(8)), build(make, data.info)
    model.dropout.p = 0.0

    def assert_followed(model):
        for training in (True, False):
            expected = model.train(training)(batch.graph, batch.node_feats, batch.edge_feats)
            torch.testing.assert_close(logits_of(model, batch), expected, rtol=1e-10, atol=1e-10)

    def write(model, value):
        for name, buffer in model.named_buffers():
            if name.endswith("eps"):
                buffer.fill_(value)

    assert_followed(model)
    for value in (0.3, 0.0, -1.0):
        write(model, value)
        assert_followed(model)
        other = copy.deepcopy(model)
        write(other, value + 1)
        assert_followed(other)
        assert_followed(model)
        assert_followed(model.float().double())


def egin(info, dim):
    return EGINConv(MLP(dim + info.edge_dim, 8, 8))


def egin_e(info, dim, kind=EGINEConv, learn_eps=False):
    return kind(MLP(dim + 3, 8, 8), MLP(info.edge_dim, 3, 3, norm="none"), learn_eps)


class Blind(EGINEConv):
    """Sees no edges: a layer of one's own, which says how it is summed too."""

    def forward(self, graph, h, e):
        return self.mlp(torch.cat([h + sum_neighbors(graph, h), h.new_zeros(len(h), 3)], dim=1))

    def messages(self, batch):
        nodes = batch.node_feats
        return Messages(closed(batch), nodes.new_zeros(len(nodes), 3))


STACKS = {
    "EGIN-E, EGIN": [egin_e, egin],
    "EGIN, EGIN-E": [egin, egin_e],
    "EGIN-E, EGIN-E-ε": [egin_e, partial(egin_e, learn_eps=True)],
    "one's own": [partial(egin_e, kind=Blind)] * 2,
    "EGIN-E, one's own": [egin_e, partial(egin_e, kind=Blind)],
    "none": [],
}


@pytest.mark.parametrize("stack", STACKS)
def test_layers_of_several_kinds_in_one_model(stack):
    def make(info, hidden_dim, num_layers, dropout):
        dims = [info.node_dim, hidden_dim]
        convs = [layer(info, dim) for layer, dim in zip(STACKS[stack], dims, strict=False)]
        return GraphClassifier(info, convs, hidden_dim, dropout)

    data = odd_dataset()
    assert_same(make, data, torch.arange(len(data)))


def other_activation(model):
    model.convs[0].mlp[2] = torch.nn.Tanh()


def longer_mlp(model):
    model.convs[1].mlp.append(BatchNorm(8).double())


def no_statistics(model):
    model.norms[0] = BatchNorm(8, track_running_stats=False).double()


def other_scores(model):
    model.scores[1] = torch.nn.Sequential(model.scores[1], torch.nn.Tanh())


@pytest.mark.parametrize("change", [other_activation, longer_mlp, no_statistics, other_scores])
def test_a_part_exchanged_by_hand_counts(change):
    data = odd_dataset()
    model = build(EGIN, data.info)
    change(model)
    assert_same_model(model, assemble(data, torch.arange(len(data))))


@FAMILY
@pytest.mark.parametrize("name", ["MUTAG", "Cuneiform"])
def test_single_precision_on_real_graphs(make, name):
    data = load_tu(name)
    assert_same(make, data, torch.arange(32), torch.float32, tolerance=2e-3)


@FAMILY
def test_the_shorter_way_is_taken_and_makes_no_dgl_graph(make):
    data = odd_dataset()
    batch = assemble(data, torch.arange(4))
    logits_of(build(make, data.info), batch)
    assert "graph" not in vars(batch)


class Doubled(EGIN):
    def forward(self, graph, node_feats, edge_feats):
        return 2 * super().forward(graph, node_feats, edge_feats)


@pytest.mark.parametrize("make", [Doubled, GINE])
def test_a_model_that_does_not_know_batches_is_called_as_ever(make):
    data = odd_dataset()
    batch = assemble(data, torch.arange(4))
    model = build(make, data.info).eval()
    assert torch.equal(logits_of(model, batch), model(batch.graph, batch.node_feats, batch.edge_feats))


class Plain(torch.nn.Module):
    """Somebody's own model, which knows nothing of this package."""

    def __init__(self, info):
        super().__init__()
        self.linear = torch.nn.Linear(info.node_dim, info.classes, dtype=torch.float64)

    def forward(self, graph, node_feats, edge_feats):
        graph.ndata["h"] = self.linear(node_feats)
        return dgl.sum_nodes(graph, "h")


class PlainEmbedding(Plain):
    def embed(self, graph, node_feats, edge_feats):
        return 3 * self(graph, node_feats, edge_feats)


def test_a_model_of_ones_own_goes_by_the_public_call():
    data = odd_dataset()
    batch, model = assemble(data, torch.arange(4)), PlainEmbedding(data.info)
    scores = model(batch.graph, batch.node_feats, batch.edge_feats)
    assert torch.equal(logits_of(model, batch), scores)
    assert torch.equal(embeddings_of(model, batch), 3 * scores)
    assert logits_of(Plain(data.info), batch).shape == scores.shape
    with pytest.raises(AttributeError, match="Plain has no `embed`: define embed"):
        embeddings_of(Plain(data.info), batch)


def test_a_hook_on_the_model_or_a_layer_sees_the_call():
    data, seen = odd_dataset(), []
    batch = assemble(data, torch.arange(4))
    for watched in (lambda model: model, lambda model: model.convs[1]):
        model = build(EGIN, data.info)
        watched(model).register_forward_hook(lambda *call: seen.append(1))
        logits_of(model, batch)
    assert len(seen) == 2


@FAMILY
def test_mixed_precision_goes_by_the_public_call(make):
    data = odd_dataset(dtype=torch.float32)
    batch = assemble(data, torch.arange(8))
    model = build(make, data.info, torch.float32).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(logits_of(model, batch), model(batch.graph, batch.node_feats, batch.edge_feats))


@FAMILY
def test_dropout_drops_scores_of_a_depth_and_keeps_their_mean(make):
    data = odd_dataset()
    model, batch = build(make, data.info), assemble(data, torch.arange(8))
    for norm in filter(lambda module: isinstance(module, torch.nn.BatchNorm1d), model.modules()):
        norm.momentum = 0.0
    kept = logits_of(model, batch)
    model.dropout.p = 0.5
    torch.manual_seed(0)
    drawn = torch.stack([logits_of(model, batch).detach() for _ in range(2000)])
    assert len(drawn[:, 0, 0].unique()) == 2 ** len(model.scores)
    error = drawn.std(0) / 2000**0.5
    assert ((drawn.mean(0) - kept).abs() < 5 * error + 1e-9).all()


class Watching(TorchDispatchMode):
    """Remembers what a GPU would have to wait for, or fetch from the host."""

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


@FAMILY
@pytest.mark.parametrize("edges", ["types", "real"])
def test_a_step_never_waits_for_the_device(make, edges):
    data = odd_dataset("odd", edges, copies=9, dtype=torch.float32)
    model = build(make, data.info, torch.float32)
    loader, generator = GraphLoader(data, range(len(data)), 16), torch.Generator().manual_seed(0)

    def epoch():
        for batch in loader.shuffled(generator):
            cross_entropy(logits_of(model, batch), batch.labels).backward()
            assert stepper_of(model)(
                batch, partial(cross_entropy_with_gradient, labels=batch.labels, weights=None)
            )

    epoch()  # makes what is kept
    with Watching() as watching:
        epoch()
    assert watching.seen == set()


@FAMILY
@pytest.mark.parametrize("edges", ["types", "real"])
@pytest.mark.parametrize("learn_eps", [False, True])
def test_a_stepper_serves_for_one_batch_after_another(make, edges, learn_eps):
    """Nothing of a batch is left for the next, and weights that an optimizer moves are seen."""
    data = odd_dataset("odd", edges, copies=3)
    model = build(make, data.info, learn_eps=learn_eps)
    twin, step = copy.deepcopy(model), stepper_of(model)
    batches = list(GraphLoader(data, range(len(data)), 5).shuffled(torch.Generator().manual_seed(0)))
    assert len(batches) > 2
    for batch in batches:
        for each in (model, twin):
            each.zero_grad()
        _, scores = step(batch, partial(cross_entropy_with_gradient, labels=batch.labels, weights=None))
        expected = twin(batch.graph, batch.node_feats, batch.edge_feats)
        cross_entropy(expected, batch.labels).backward()
        torch.testing.assert_close(scores, expected.detach(), rtol=1e-9, atol=1e-9)
        with torch.no_grad():
            for weight, other in zip(model.parameters(), twin.parameters(), strict=True):
                gradient = torch.zeros_like(other) if weight.grad is None else weight.grad
                torch.testing.assert_close(gradient, other.grad, rtol=1e-9, atol=1e-9)
                for each in (weight, other):
                    each.sub_(0.1 * other.grad)
