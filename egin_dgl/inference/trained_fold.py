"""The kept model of a fold, loaded again with all that it learnt about its data, ready to answer for other graphs."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.loader import Batch
from egin_dgl.data.standardize import Standardizer
from egin_dgl.data.transform import Transform
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError, TrainingError
from egin_dgl.evaluation.calibration import probabilities
from egin_dgl.ewl.inputs import as_graph_set
from egin_dgl.ewl.kernel_machine import KernelMachine
from egin_dgl.ewl.preprocessing import FittedColors
from egin_dgl.models.model import embeddings_of
from egin_dgl.models.registry import trusted
from egin_dgl.models.wl_kernel import WLKernelSVM
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.passes import all_batches, compute_logits

TRANSFORMS: dict[str, Callable[[dict], Transform]] = {
    "Standardizer": Standardizer.from_dict,
    "FittedColors": FittedColors.from_dict,
}


@dataclass(frozen=True, eq=False)
class TrainedFold:
    """Scores of graphs whose features are those of `info`: what `vocabulary` makes of raw ones."""

    number: int
    info: DatasetInfo
    vocabulary: Vocabulary | None
    temperature: float | None  # None: its probabilities are not calibrated
    transforms: tuple[Transform, ...]
    model: nn.Module | KernelMachine
    options: TrainerOptions  # of which only the precision matters here
    device: torch.device

    def prepared(self, dataset: GraphDataset) -> GraphDataset:
        """The graphs as the model sees them; features of another kind are refused."""
        for kind in ("node", "edge"):
            found, known = (getattr(info, f"{kind}_names") for info in (dataset.info, self.info))
            if found != known:
                raise DataError(
                    f"the model knows the {kind} features {some_of(known)}, the graphs have {some_of(found)}: give graphs "
                    "of the same kind as those it was trained on"
                )
        for transform in self.transforms:
            dataset = transform.apply(dataset)
        return dataset.to(self.device)

    def logits(self, dataset: GraphDataset) -> Tensor:
        """Class scores (G, classes), on the CPU."""
        if not len(dataset):
            return torch.zeros(0, self.info.classes)
        if isinstance(self.model, KernelMachine):
            kernel = self.model.kernel
            graphs = as_graph_set(
                self.prepared(dataset), attributes=kernel.attributes, decimals=kernel.decimals
            )
            return self.model.logits(graphs, self.info.classes)
        model = self.model
        return self._in_batches(dataset, lambda batch: compute_logits(model, batch, self.options))

    def probabilities(self, dataset: GraphDataset) -> Tensor:
        """(G, classes) in double precision, calibrated where there was a validation part to learn it from."""
        return probabilities(self.logits(dataset), self.temperature)

    def embeddings(self, dataset: GraphDataset) -> Tensor:
        """A vector a graph, from which the class is read."""
        if isinstance(self.model, KernelMachine):
            raise TrainingError("a kernel machine has no embeddings: it counts colours")
        model = self.model
        return self._in_batches(dataset, lambda batch: embeddings_of(model, batch))

    @torch.no_grad()
    def _in_batches(self, dataset: GraphDataset, call: Callable[[Batch], Tensor]) -> Tensor:
        return torch.cat([call(batch).cpu() for batch in all_batches(self.prepared(dataset))])


def load_fold(folder: FoldDir, device: str | torch.device = "cpu", trust: bool = False) -> TrainedFold:
    """The kept model of a fold; `trust` lets its folder name a class that is not of this package."""
    tensors, metadata = folder.load_tensors()
    try:
        info = DatasetInfo.from_dict(metadata["info"])
        make_model = anything(metadata["model"]) if trust else trusted(metadata["model"])
        transforms = [TRANSFORMS[name](state) for name, state in metadata["transforms"].items()]
        vocabulary = metadata["vocabulary"] and Vocabulary.from_json(json.dumps(metadata["vocabulary"]))
        seen = without_graphs(info)
        for transform in transforms:
            seen, make_model = transform.apply(seen), transform.wrap(make_model)
        made = make_model(seen.info)
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise TrainingError(
            f"{folder.weights}: lacks what is needed to use it ({error!r}); an earlier version wrote it: train again"
        ) from None
    model: nn.Module | KernelMachine
    if isinstance(made, WLKernelSVM):
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        model = KernelMachine.from_arrays(made.make_kernel(), arrays)
    else:
        folder.load_weights(made)
        model = made.to(device).eval()
    return TrainedFold(
        number=folder.fold,
        info=info,
        vocabulary=vocabulary,
        temperature=metadata.get("temperature"),
        transforms=tuple(transforms),
        model=model,
        options=TrainerOptions(precision=metadata.get("precision", "fp32")),
        device=torch.device(device),
    )


def anything(node: dict) -> Callable[..., Any]:
    """What makes a model of any class that the folder names: importing it runs its code."""
    place, _, name = str(node["_target_"]).rpartition(".")
    options = {key: value for key, value in node.items() if not key.startswith("_")}
    try:
        return partial(getattr(import_module(place), name), **options)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{node['_target_']} cannot be imported ({error})") from None


def without_graphs(info: DatasetInfo) -> GraphDataset:
    """A dataset of these features and no graph: transforms say by it what they make of the features."""
    none, first = torch.zeros(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    features = torch.zeros(0, info.node_dim), torch.zeros(0, info.edge_dim)
    return GraphDataset(replace(info, graphs=0), none, first, first, none, none, *features)


def some_of(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" … ({len(names)})" if len(names) > 8 else "")
