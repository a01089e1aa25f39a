r"""Data parallelism: several processes, the ranks, train one model together.

Every rank has the same weights and takes its share of each batch. With the mean loss :math:`L_r` of the share of rank r, whose
labels have the total weight :math:`w_r`, loss and gradient of the whole batch are

.. math:: L = \frac{\sum_r w_r L_r}{\sum_r w_r}, \qquad \nabla L = \frac{\sum_r w_r \nabla L_r}{\sum_r w_r}

for shares of any sizes, missing labels and weighted classes: one all-reduce of the flat gradient per step. What follows from it
(optimizer, EMA, learning rate) every rank computes by itself, with the same result. BatchNorm normalises a training step
by the rows of the rank, as `DistributedDataParallel` does; statistics for evaluation are those of all ranks.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from egin_dgl.data.dataset import Indices
from egin_dgl.errors import TrainingError
from egin_dgl.training.parallel.shared_sum import SharedSum


class LostRank(TrainingError):
    """Another rank has ended or cannot be reached."""


@contextmanager
def lost_ranks() -> Iterator[None]:
    """Around communication: torch raises a RuntimeError where a rank does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise LostRank("another rank of the run ended (killed, or out of memory?)") from error


def check_nothing() -> None:
    """Ranks other than the first need not notice that one has ended: the first ends them."""


@dataclass(frozen=True)
class Ranks:
    """The ranks that train a fold, as seen by one of them; a single one communicates with nobody."""

    rank: int = 0
    size: int = 1
    shared: SharedSum | None = None  # adds up gradients on the CPU, if all ranks are on this machine
    check: Callable[[], None] = check_nothing  # raises if a rank has ended

    @property
    def is_first(self) -> bool:
        """Whether this rank writes files and reports epochs."""
        return self.rank == 0

    def share(self, graphs: Indices) -> Indices:
        """The consecutive graphs that this rank evaluates."""
        return graphs if self.size == 1 else torch.as_tensor(graphs).tensor_split(self.size)[self.rank]

    def broadcast(self, value: Any) -> Any:
        """The value of the first rank; that of others is ignored."""
        if self.size == 1:
            return value
        box: list[Any] = [value]
        with lost_ranks():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def broadcast_weights(self, model: nn.Module) -> None:
        """Give every rank the weights and buffers of the first."""
        if self.size > 1:
            with lost_ranks():
                for tensor in model.state_dict().values():
                    dist.broadcast(tensor, src=0)

    def sum(self, values: Tensor) -> Tensor:
        """The sum over ranks, in place."""
        if self.size > 1:
            with lost_ranks():
                dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Whether a flag is set on any rank."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor(int(flag))))

    def stack(self, values: Tensor) -> Tensor:
        """Values of the same shape of all ranks: (…) -> (ranks, …)."""
        stacked = values.new_empty(self.size, *values.shape)
        with lost_ranks():
            dist.all_gather(list(stacked.unbind()), values.contiguous())
        return stacked

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all ranks, one rank after the other: (N_r, …) -> (Σ N_r, …)."""
        if self.size == 1:
            return rows
        lengths = self.stack(torch.tensor(len(rows), device=rows.device)).tolist()
        padded = rows.new_zeros(max(lengths), *rows.shape[1:])
        padded[: len(rows)] = rows
        return torch.cat([rank[:length] for rank, length in zip(self.stack(padded), lengths, strict=True)])

    def average_gradients(self, grads: Sequence[Tensor], loss: Tensor, weight: Tensor | float) -> Tensor:
        """Replace the gradients of this rank's share of a batch by those of the whole batch; return its loss.

        `weight` is that of the share, see `Task.loss_weight`.
        """
        if self.size == 1:
            return loss
        values = torch.cat([*(grad.flatten() for grad in grads), loss.reshape(1), loss.new_ones(1)])
        values.mul_(weight)
        if self.shared and values.device.type == "cpu":
            self.shared.add(values, self.rank, self.check)
        else:
            self.sum(values)
        values.div_(values[-1].clone().clamp_(min=torch.finfo(values.dtype).tiny))
        for grad, mean in zip(grads, values.split([*(grad.numel() for grad in grads), 2]), strict=False):
            grad.copy_(mean.view_as(grad))
        return values[-2]

    def average_bn_stats(self, model: nn.Module) -> None:
        """Replace the running statistics of every BatchNorm by their mean over ranks."""
        if self.size == 1:
            return
        layers = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]
        buffers = [b for m in layers for b in (m.running_mean, m.running_var) if b is not None]
        if not buffers:
            return
        means = self.sum(torch.cat(buffers)).div_(self.size).split([len(buffer) for buffer in buffers])
        for buffer, mean in zip(buffers, means, strict=True):
            buffer.copy_(mean)

    def share_moments(self, count: int, mean: Tensor, variance: Tensor) -> tuple[int, Tensor, Tensor]:
        """Number, mean and variance of the rows of all ranks, from those of this rank."""
        if self.size == 1:
            return count, mean, variance
        own = torch.cat([mean.new_tensor([count]), mean, variance]).double()
        counts, means, variances = self.stack(own).split([1, len(mean), len(mean)], dim=1)
        shares = counts / counts.sum().clamp(min=1)
        total = (shares * means).sum(0)
        spread = (shares * (variances + (means - total).square())).sum(0)
        return int(counts.sum()), total.to(mean.dtype), spread.to(variance.dtype)


ONE_RANK = Ranks()
