"""Layers that sum over neighbors and end in an MLP, on the sums of a batch; registered per layer class."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from egin_dgl.fast.sparse_sums import BatchSums, BatchTuples, LinearMap, Sums
from egin_dgl.layers import MLP, EGINCConv, EGINConv, EGINEConv, EGINMConv, GINConv
from egin_dgl.layers.egnn import EGNNCConv


class LayerInputs(NamedTuple):
    """What a layer sums in one batch."""

    neighbor_sum: LinearMap  # S
    edge_part: Tensor | None  # c
    tuples: BatchTuples | None = None  # what is summed instead, where S is a sum of tuples


class FastLayer:
    r"""A layer as an MLP over the sum S of a node and its neighbors, ε times the node itself, and an edge part c.

    .. math:: h_i' = MLP\{(S h)_i + \epsilon\,h_i,\; c_i\}

    A subclass returns S and c of one layer class. A fixed ε is read when the object is made.
    """

    definition: tuple[str, ...] = ("forward",)  # methods that define the layer

    def __init__(self, layer: Any):
        self.layer = layer
        self.bypassed, self.mlp, self.eps = self.parts()
        self.has_eps = isinstance(self.eps, nn.Parameter) or is_nonzero(layer, self.eps)

    def parts(self) -> tuple[list[nn.Module], nn.Module, Tensor]:
        """The modules that `forward` does not call, the MLP, and ε."""
        return [self.layer], self.layer.mlp, self.layer.eps

    def neighbor_sum(self, sums: Sums) -> LinearMap:
        """S. It may have several rows per node, one after another."""
        return sums.self_and_neighbors

    def edge_part(self, sums: Sums) -> Tensor | None:
        """c: (N, R)."""
        return None

    def applies(self) -> bool:
        """Whether this computes the layer as it is now."""
        return not any(map(has_hooks, self.bypassed))

    def inputs(self, sums: Sums) -> LayerInputs:
        return LayerInputs(self.neighbor_sum(sums), self.edge_part(sums))

    def forward(self, sums: BatchSums, h: Tensor) -> Tensor:
        """(N, D) -> (N, H)."""
        summed = self.neighbor_sum(sums)(h).view(len(h), -1, h.shape[1])
        if self.has_eps:
            summed = summed + self.eps * h.unsqueeze(1)
        # Of several rows per node, the equations count the features of the node first, then the rows.
        summed = summed.transpose(1, 2).flatten(1)
        edge_part = self.edge_part(sums)
        return self.mlp(summed if edge_part is None else torch.cat([summed, edge_part], dim=-1))


FastClass = TypeVar("FastClass", bound=type[FastLayer])
REGISTRY: dict[type[nn.Module], type[FastLayer]] = {}


def register(layer_class: type[nn.Module]) -> Callable[[FastClass], FastClass]:
    """Class decorator: a `FastLayer` computes layers of `layer_class`, and of subclasses that do not redefine them."""

    def add(fast_class: FastClass) -> FastClass:
        REGISTRY[layer_class] = fast_class
        return fast_class

    return add


@register(GINConv)
class FastGIN(FastLayer):
    """The sum alone."""


@register(EGINConv)
class FastEGIN(FastLayer):
    def edge_part(self, sums: Sums) -> Tensor:
        return sums.edge_sums


@register(EGINCConv)
class FastEGINC(FastLayer):
    def neighbor_sum(self, sums: Sums) -> LinearMap:
        return sums.cross_products


@register(EGINEConv)
class FastEGINE(FastLayer):
    def edge_part(self, sums: Sums) -> Tensor:
        edge_sum, vectors = sums.edge_types  # with the void edge once, as in (1 + ε) MLP₂(δ)
        edge_mlp = self.layer.edge_mlp
        total = edge_sum(edge_mlp(vectors))
        if self.has_eps:
            total = total + self.eps * edge_mlp(vectors.new_zeros(1, vectors.shape[1]))
        return total


@register(EGINMConv)
class FastEGINM(FastLayer):
    r"""MLP₂ on the distinct tuples, its first and last linear map on nodes.

    .. math:: MLP_2(h_j, e_{ij}) = W_2\,f(W_h h_j + W_e e_{ij} + b) + b_2

    W_h is applied to nodes, W_e to distinct edge vectors, W_2 to sums over neighbors. What is computed for each tuple is f.
    """

    def parts(self) -> tuple[list[nn.Module], nn.Module, Tensor]:
        return [self.layer, *self.layer.tuple_mlp.modules()], self.layer.mlp, self.layer.eps

    def applies(self) -> bool:
        tuple_mlp = self.layer.tuple_mlp
        return super().applies() and type(tuple_mlp) is MLP and all(map(is_rowwise, tuple_mlp))

    def neighbor_sum(self, sums: Sums) -> LinearMap:
        return sums.tuples.total

    def inputs(self, sums: Sums) -> LayerInputs:
        return LayerInputs(sums.tuples.total, None, tuples=sums.tuples)

    def forward(self, sums: BatchSums, h: Tensor) -> Tensor:
        return self.mlp(self.sum_tuples(h, sums.tuples))

    def sum_tuples(self, h: Tensor, tuples: BatchTuples) -> Tensor:
        """(1 + ε) MLP₂(h_i, δ) + Σ_j MLP₂(h_j, e_ij): (N, D) -> (N, M)."""
        first, *between = self.layer.tuple_mlp
        weight_h, weight_e = first.weight.tensor_split([h.shape[1]], dim=1)
        vectors = linear(tuples.edge_vectors, weight_e, first.bias)
        # There are many rows: they are overwritten where no gradient needs them.
        rows = tuples.nodes(linear(h, weight_h)).add_(tuples.vectors(vectors))
        for step in between[:-1]:
            rows = rows.relu_() if isinstance(step, nn.ReLU) else step(rows)
        total, counts = tuples.total(rows), tuples.counts
        if self.has_eps:
            total, counts = total + self.eps * tuples.void(rows), counts + self.eps
        return total if not between else linear(total, between[-1].weight) + counts * between[-1].bias


@register(EGNNCConv)
class FastEGNNC(FastLayer):
    """A convolution per channel of EGCN, the same channels in every layer."""

    def parts(self) -> tuple[list[nn.Module], nn.Module, Tensor]:
        return [self.layer], nn.Identity(), torch.zeros(())

    def applies(self) -> bool:
        return super().applies() and self.layer.normalized

    def forward(self, sums: BatchSums, h: Tensor) -> Tensor:
        return sums.channels(self.layer.linear(h)).view(len(h), -1)


def is_rowwise(step: nn.Module) -> bool:
    """Whether a step of an MLP computes each row by itself, and equal rows alike."""
    return type(step) in (nn.Linear, nn.Identity, nn.ReLU) or (type(step) is nn.Dropout and step.p == 0)


def find_fast_layer(layer: nn.Module) -> FastLayer | None:
    """The layer as a `FastLayer`; None if its class is not registered, redefines the layer, or has hooks."""
    base = next((base for base in type(layer).__mro__ if base in REGISTRY), None)
    if base is None or is_overridden(layer, base, *REGISTRY[base].definition):
        return None
    fast_layer = REGISTRY[base](layer)
    return fast_layer if fast_layer.applies() else None


_NONZERO: WeakKeyDictionary[nn.Module, tuple[int, bool]] = WeakKeyDictionary()


def is_nonzero(layer: nn.Module, eps: Tensor) -> bool:
    """Whether the fixed ε of a layer is not zero; read once after each change, as a GPU must be waited for."""
    version, known = _NONZERO.get(layer, (None, False))
    if version != eps._version:
        known = bool(eps)
        _NONZERO[layer] = eps._version, known
    return known


def is_overridden(module: nn.Module, base: type, *methods: str) -> bool:
    """Whether the module, or a subclass of `base` that it is an instance of, redefines one of these methods."""
    return any(
        name in vars(module) or getattr(type(module), name) is not getattr(base, name) for name in methods
    )


def has_hooks(module: nn.Module) -> bool:
    """Whether a hook is registered on the module. torch has no public way to ask."""
    forward = module._forward_hooks or module._forward_pre_hooks
    return bool(forward or module._backward_hooks or module._backward_pre_hooks)
