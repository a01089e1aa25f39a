"""Feature transforms that a fold fits on its training graphs and applies to all graphs."""

from collections.abc import Callable
from typing import Any

from egin_dgl.data.dataset import GraphDataset


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
