"""What GIN and the EGIN family do alike on a batch of the loader."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.layers.sums import Sums


class Learnt(Protocol):
    """What the edge halves of all layers of a model were computed by, without a record of autograd's."""

    def parameters(self) -> list[Tensor]: ...

    def gradients(self, to_halves: Sequence[Tensor]) -> list[Tensor]:
        """Those of `parameters`, from those of the edge halves."""
        ...


class Messages(NamedTuple):
    """What a layer sums on one batch."""

    sums: Sums  # S, with the node itself in its sums; it may have several rows a node, one after another
    edge_half: Tensor | None = None  # c (N, R)
    learnt: Learnt | None = None  # where c is computed, and autograd knows nothing of it


class SumLayer(nn.Module):
    r"""MLP over the sum of the node and its neighbours, ε times the node itself, and an edge half beside them.

    .. math:: h_i' = MLP\{(S h)_i + \epsilon\,h_i,\; c_i\}

    A layer says what S and c are in `messages`, beside the `forward` that defines it.
    """

    def ending(self) -> nn.Module:
        """The MLP."""
        raise NotImplementedError

    def epsilon(self) -> Tensor:
        """ε, a tensor of one element."""
        raise NotImplementedError

    def messages(self, batch: Batch) -> Messages:
        """S and c."""
        raise NotImplementedError

    @classmethod
    def all_messages(
        cls, layers: Sequence["SumLayer"], by_hand: bool = False
    ) -> Callable[[Batch], list[Messages]]:
        """Those of all layers of a model on each batch, of which the first is of this class; they may have something to
        share, and `by_hand` a gradient of what they share that does not need autograd."""
        return lambda batch: [layer.messages(batch) for layer in layers]

    def on_batch(self, batch: Batch, h: Tensor) -> Tensor:
        """The same as `forward`, for the batch that h (N, D) belongs to."""
        sums, edge_half, _ = self.messages(batch)
        summed = sums(h).view(len(h), -1, h.shape[1])
        if self.has_eps():
            summed = summed + self.epsilon() * h.unsqueeze(1)
        # Of several rows a node, the layers' equations count first the features of a node, then the rows.
        summed = summed.transpose(1, 2).flatten(1)
        return self.ending()(summed if edge_half is None else torch.cat([summed, edge_half], dim=-1))

    def has_eps(self) -> bool:
        """Whether ε is learnt, was learnt and is frozen now, or is fixed at another value than zero.

        A fixed value is looked at once and again after torch saw it change: to read it at every step, a GPU would wait.
        """
        eps = self.epsilon()
        if eps.requires_grad or eps.is_inference():  # torch does not count the changes of inference tensors
            return True
        look = LOOKS.get(self)
        if look is None or look.eps is not eps or look.version != eps._version:
            look = LOOKS[self] = Look(eps, eps._version, isinstance(eps, nn.Parameter) or bool(eps))
        return look.counts


class Look(NamedTuple):
    eps: Tensor
    version: int
    counts: bool


# Beside the layers and not in them: a copy of a layer has an ε of its own.
LOOKS: WeakKeyDictionary[SumLayer, Look] = WeakKeyDictionary()
