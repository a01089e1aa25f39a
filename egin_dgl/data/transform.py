"""What a fold learns about its features from its training part, and applies to all of its graphs."""

from collections.abc import Callable
from typing import Any

from egin_dgl.data.dataset import GraphDataset


class Transform:
    """Fitted on training graphs; saved with the weights, so that prediction treats new graphs the same."""

    def apply(self, dataset: GraphDataset) -> GraphDataset:
        """The dataset with other features."""
        raise TypeError(f"{type(self).__name__} must say how it changes a dataset")

    def to_dict(self) -> dict:
        """Plain lists, numbers and strings, for JSON."""
        raise TypeError(f"{type(self).__name__} must say how it is saved")

    def wrap(self, make_model: Callable[..., Any]) -> Callable[..., Any]:
        """How a model is made for the changed features, where it must know of the change."""
        return make_model
