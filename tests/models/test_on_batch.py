"""On a batch of the loader a model may take a shorter way: it is the same function, values and gradients."""

import pytest
import torch
from odd_graphs import SHAPES, odd_dataset
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from egin_dgl.data import load_tu
from egin_dgl.data.loader import GraphLoader, assemble
from egin_dgl.models import EGIN, EGINC, EGINE, GIN, GINE
from egin_dgl.models.model import embeddings_of, logits_of

FAMILY = pytest.mark.parametrize("make", [GIN, EGIN, EGINC, EGINE])
EDGES = ("types", "zero", "real", "symmetric")


def build(make, info, dtype=torch.float64, **options):
    torch.manual_seed(0)
    model = make(info, hidden_dim=8, layers=2, dropout=0.0, **options).to(dtype).train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter) if "eps" not in name else 0.7)
    return model


def run(model, batch, definition):
    """Scores, gradients and running statistics after one step in training mode, then scores in evaluation mode."""
    model.zero_grad()
    torch.manual_seed(1)  # of dropout
    inputs = (batch.graph, batch.node_feats, batch.edge_feats)
    scores = model(*inputs) if definition else logits_of(model, batch)
    cross_entropy(scores, batch.labels).backward()
    found = {"scores": scores.detach()}
    found |= {f"gradient of {name}": p.grad for name, p in model.named_parameters()}
    found |= {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        model.eval()
        found["evaluated"] = model(*inputs) if definition else logits_of(model, batch)
        found["embedded"] = model.embed(*inputs) if definition else embeddings_of(model, batch)
    return found


def assert_same(make, data, graphs, dtype=torch.float64, tolerance=1e-10, **options):
    batch = assemble(data, graphs)
    definition = run(build(make, data.info, dtype, **options), batch, True)
    shorter = run(build(make, data.info, dtype, **options), batch, False)
    assert definition.keys() == shorter.keys()
    for name, expected in definition.items():
        # Batch normalisation subtracts the mean, and with it any bias before it: only rounding is left of its gradient.
        torch.testing.assert_close(
            shorter[name], expected, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
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

    epoch()  # makes what is kept
    with Watching() as watching:
        epoch()
    assert watching.seen == set()
