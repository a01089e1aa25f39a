"""What every model of the zoo says about itself."""

from typing import Protocol, TypeGuard, runtime_checkable

from dgl import DGLGraph
from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.layers.shortcut import autocasting, stands
from egin_dgl.models.arguments import gather_arguments
from egin_dgl.models.fused import LossOf, Step


class GraphModel(nn.Module):
    """Built from a `DatasetInfo`, called as ``model(graph, node_feats, edge_feats) -> logits``.

    N nodes and E edges in a batch of B graphs: (N, node_dim), (E, edge_dim) -> (B, classes).
    """

    title: str  # in tables and plots
    paper: str = ""  # who proposed it, where and when
    when: str = ""  # one line: when to use it
    uses_edges: bool = True  # False: edge features never change the logits
    uses_structure: bool = True  # False: which nodes an edge joins never changes the logits

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        gather_arguments(cls)

    @property
    def name(self) -> str:
        """The model's name in tables and plots; a variant may add to its title."""
        return self.title

    def forward(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Class scores: (B, classes)."""
        raise NotImplementedError

    def embed(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Graph embeddings: one vector a graph, from which the class is read."""
        raise NotImplementedError


class KnowsBatches(Protocol):
    """A model that has shorter ways for batches of the loader, beside its `forward` and `embed`; some of these."""

    def on_batch(self, batch: Batch) -> Tensor:
        """What `forward` gives."""

    def embed_batch(self, batch: Batch) -> Tensor:
        """What `embed` gives."""

    def stepper(self) -> Step | None:
        """What makes of a batch the loss and what `forward` gives, with the gradients in place; None where only autograd can
        do that. It serves as long as the model's modules, modes and hooks stay what they are."""

    def measure_on(self, batch: Batch, rows: int) -> Tensor | None:
        """What `forward` gives once batch normalisation is measured on the first `rows` nodes; None where one pass is not
        enough."""


@runtime_checkable
class Embeds(Protocol):
    """A model that embeds graphs, as `GraphModel` does."""

    def embed(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor: ...


def logits_of(model: nn.Module, batch: Batch) -> Tensor:
    """Class scores of a batch by the model's own `on_batch`, where it has one, and else by the public call."""
    if may_shorten(model, batch, "on_batch"):
        return model.on_batch(batch)
    return model(batch.graph, batch.node_feats, batch.edge_feats)


def stepper_of(model: nn.Module) -> Step:
    """Steps of a model as it is now; they give None where that is left to autograd."""
    shorter = model.stepper() if has_shortcut(model, "stepper", "on_batch") else None

    def step(batch: Batch, loss_of: LossOf) -> tuple[Tensor, Tensor] | None:
        return shorter(batch, loss_of) if shorter and not autocasting(batch.labels.device) else None

    return step


def measured_logits_of(model: nn.Module, batch: Batch, rows: int) -> Tensor | None:
    """Class scores of a batch, every batch normalisation set to the statistics of its first `rows` nodes, in one pass; None
    where the model knows no such way."""
    return model.measure_on(batch, rows) if may_shorten(model, batch, "measure_on", "on_batch") else None


def embeddings_of(model: nn.Module, batch: Batch) -> Tensor:
    """Graph embeddings of a batch, found in the same way."""
    if may_shorten(model, batch, "embed_batch", "embed"):
        return model.embed_batch(batch)
    if not isinstance(model, Embeds):
        raise AttributeError(
            f"{type(model).__name__} has no `embed`: define embed(graph, node_feats, edge_feats), which gives a vector "
            "a graph, as models.GraphModel says"
        )
    return model.embed(batch.graph, batch.node_feats, batch.edge_feats)


def has_shortcut(model: nn.Module, shortcut: str, *definition: str) -> TypeGuard[KnowsBatches]:
    """Whether the model has this method and it stands for the public call."""
    return stands(shortcut, model, *definition)


def may_shorten(model: nn.Module, batch: Batch, shortcut: str, *definition: str) -> TypeGuard[KnowsBatches]:
    """The same for a batch; mixed precision goes by the public call always."""
    return has_shortcut(model, shortcut, *definition) and not autocasting(batch.labels.device)
