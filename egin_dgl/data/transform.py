"""Feature transforms that a fold fits on its training graphs and applies to all graphs."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from egin_dgl.data.dataset import GraphDataset, Indices


class Transform:
    """Base class of fitted transforms; saved with the weights, so that new graphs are transformed in the same way."""

    def apply(self, dataset: GraphDataset) -> GraphDataset:
        """The dataset with transformed features."""
        raise NotImplementedError

    def to_dict(self) -> dict:
        """The fitted state as a JSON object."""
        raise NotImplementedError

    def wrap(self, make_model: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the model factory, for transforms with learnable parameters."""
        return make_model


@dataclass(frozen=True)
class Standardizer(Transform):
    """x ← (x − mean) / std on the continuous columns; one-hot columns remain 0 and 1.

    So do attributes that are 0 or 1 on every training graph, such as a one-hot encoding in a file of floats: a rare one
    would become a very large number.

    >>> from egin_dgl.data import bonds
    >>> dataset = bonds(graphs=4)
    >>> Standardizer.fit(dataset, [0, 1]).apply(dataset) is dataset  # no continuous column
    True
    """

    node_mean: tuple[float, ...] = ()
    node_std: tuple[float, ...] = ()
    edge_mean: tuple[float, ...] = ()
    edge_std: tuple[float, ...] = ()

    @classmethod
    def fit(cls, dataset: GraphDataset, train_indices: Indices) -> "Standardizer":
        """Mean and standard deviation over the nodes and edges of the training graphs."""
        training = torch.zeros(len(dataset), dtype=torch.bool, device=dataset.labels.device)
        training[torch.as_tensor(train_indices, dtype=torch.long, device=training.device)] = True
        return cls(
            *_moments(dataset.node_feats[dataset.node_rows.repeat(training), : dataset.info.node_attributes]),
            *_moments(dataset.edge_feats[dataset.edge_rows.repeat(training), : dataset.info.edge_attributes]),
        )

    def apply(self, dataset: GraphDataset) -> GraphDataset:
        """The dataset with standardized features; the same object if it has no continuous column."""
        if not self.node_mean and not self.edge_mean:
            return dataset
        return dataset.with_features(
            _scale(dataset.node_feats, self.node_mean, self.node_std),
            _scale(dataset.edge_feats, self.edge_mean, self.edge_std),
        )

    def to_dict(self) -> dict[str, list[float]]:
        return {key: list(values) for key, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, list[float]]) -> "Standardizer":
        return cls(**{key: tuple(map(float, numbers)) for key, numbers in values.items()})


def _moments(columns: torch.Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    columns = columns.double().cpu()  # float32 sums over 200,000 edges lose digits
    if columns.numel() == 0:
        return (0.0,) * columns.shape[1], (1.0,) * columns.shape[1]
    mean, std = columns.mean(0), columns.std(0, correction=0)
    # The std of a constant column is rounding noise, not always exactly 0.
    constant = std <= 1e-9 * mean.abs()
    indicator = ((columns == 0) | (columns == 1)).all(0)
    mean, std = mean.masked_fill(indicator, 0.0), std.masked_fill(constant | indicator, 1.0)
    return tuple(mean.tolist()), tuple(std.tolist())


def _scale(feats: torch.Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> torch.Tensor:
    if not mean:
        return feats
    feats = feats.clone()
    leading = feats[:, : len(mean)].double()
    feats[:, : len(mean)] = ((leading - leading.new_tensor(mean)) / leading.new_tensor(std)).to(feats.dtype)
    return feats
