"""What GIN and the EGIN family do alike on a batch of the loader."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from egin_dgl.data.loader import Batch
from egin_dgl.layers.sums import Sums


class SumLayer(nn.Module):
    r"""MLP over the sum of the node and its neighbours, ε times the node itself, and an edge half beside them.

    .. math:: h_i' = MLP\{(S h)_i + \epsilon\,h_i,\; c_i\}

    A layer says what S and c are in `messages`, beside the `forward` that defines it. `mlp` and `eps` are its parts.
    """

    mlp: nn.Sequential
    eps: Tensor

    def messages(self, batch: Batch) -> tuple[Sums, Tensor | None]:
        """S, with the node itself in its sums, and c (N, R) or None. S may have several rows a node, one after another."""
        raise NotImplementedError

    @classmethod
    def all_messages(cls, layers: Sequence["SumLayer"], batch: Batch) -> list[tuple[Sums, Tensor | None]]:
        """Those of all layers of a model, which may have something to share."""
        return [layer.messages(batch) for layer in layers]

    def on_batch(self, batch: Batch, h: Tensor) -> Tensor:
        """The same as `forward`, for the batch that h (N, D) belongs to."""
        sums, edge_half = self.messages(batch)
        summed = sums(h).view(len(h), -1, h.shape[1])
        # Of several rows a node, the layers' equations count first the features of a node, then the rows.
        summed = self.scaled(summed, h.unsqueeze(1)).transpose(1, 2).flatten(1)
        return self.mlp(summed if edge_half is None else torch.cat([summed, edge_half], dim=-1))

    def scaled(self, total: Tensor, own: Tensor) -> Tensor:
        """(1 + ε) own + rest, where `total` is own + rest."""
        return total + self.eps * own if self.eps.requires_grad else total
