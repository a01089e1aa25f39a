"""The saved model of a fold, loaded with its vocabulary, transforms and temperature."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from egin_dgl.data.dataset import DatasetInfo, GraphDataset
from egin_dgl.data.loader import Batch
from egin_dgl.data.transform import Standardizer, Transform
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError, EginError, TrainingError, one_line
from egin_dgl.ewl.preprocessing import FittedColors
from egin_dgl.models.dispatch import embed_batch
from egin_dgl.models.estimators.sklearn_model import FittedModel, SklearnModel
from egin_dgl.models.registry import make_registered
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.tasks import TASKS, Task
from egin_dgl.training.evaluator import compute_logits
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.precise_bn import bounded_batches

TRANSFORMS: dict[str, Callable[[dict], Transform]] = {
    "Standardizer": Standardizer.from_dict,
    "FittedColors": FittedColors.from_dict,
}


@dataclass(frozen=True, eq=False)
class TrainedFold:
    """A model with what it needs to predict graphs that have the features of `info`."""

    number: int
    info: DatasetInfo
    vocabulary: Vocabulary | None  # encodes raw graphs
    temperature: float | None  # None: probabilities are not calibrated
    transforms: tuple[Transform, ...]
    task: Task
    model: nn.Module | FittedModel
    options: TrainerOptions  # for precision and fast
    device: torch.device

    def transform(self, dataset: GraphDataset) -> GraphDataset:
        """Apply the transforms of the fold; raise a `DataError` for other features than those of training."""
        for kind in ("node", "edge"):
            found, known = (getattr(info, f"{kind}_names") for info in (dataset.info, self.info))
            if found != known:
                raise DataError(
                    f"the model was trained with {kind} features {shorten_list(known)}, the graphs have "
                    f"{shorten_list(found)}: give graphs with the same labels and attributes"
                )
        for transform in self.transforms:
            dataset = transform.apply(dataset)
        return dataset.to(self.device)

    def logits(self, dataset: GraphDataset) -> Tensor:
        """Logits or values (G, outputs), on the CPU; decision values of a kernel machine."""
        if not len(dataset):
            return torch.zeros(0, self.info.outputs)
        model = self.model
        if isinstance(model, FittedModel):
            return self.task.decode(model.outputs(self.transform(dataset)))
        outputs = self._in_batches(dataset, lambda batch: compute_logits(model, batch, self.options))
        return self.task.decode(outputs)

    def predict(self, dataset: GraphDataset) -> Tensor:
        """Probabilities, calibrated if there is a temperature, or values: (G, outputs) in double precision."""
        return self.task.predict(self.logits(dataset), self.temperature)

    def evidence(self, logits: Tensor, output: int) -> Tensor:
        """(G,) calibrated log-odds of a class or label, or values of a target: what an explanation explains."""
        return self.task.evidence(logits, output, self.temperature)

    def embeddings(self, dataset: GraphDataset) -> Tensor:
        """Graph embeddings (G, D), the input of the classifier."""
        model = self.model
        if isinstance(model, FittedModel):
            raise TrainingError(f"the {model.model.name} has no embeddings")
        return self._in_batches(dataset, lambda batch: embed_batch(model, batch, self.options.fast))

    @torch.no_grad()
    def _in_batches(self, dataset: GraphDataset, call: Callable[[Batch], Tensor]) -> Tensor:
        batches = bounded_batches(self.transform(dataset), range(len(dataset)))
        return torch.cat([call(batch).cpu() for batch in batches])


def load_fold(fold_dir: FoldDir, device: str | torch.device = "cpu", trust: bool = False) -> TrainedFold:
    """Load the saved model of a fold; `trust` allows model classes of other packages.

    Metadata may come from anybody, with values that fail anywhere in the constructors: any exception is a `TrainingError`.
    """
    tensors, metadata = fold_dir.load_tensors()
    model: nn.Module | FittedModel
    try:
        info = DatasetInfo.from_dict(metadata["info"])
        make_model = import_model(metadata["model"]) if trust else make_registered(metadata["model"])
        transforms = [TRANSFORMS[name](state) for name, state in metadata["transforms"].items()]
        vocabulary = metadata["vocabulary"] and Vocabulary.from_json(json.dumps(metadata["vocabulary"]))
        dataset = empty_dataset(info)
        for transform in transforms:
            dataset, make_model = transform.apply(dataset), transform.wrap(make_model)
        made = make_model(dataset.info)
        options = TrainerOptions(
            precision=metadata.get("precision", "fp32")
        )  # kernel machines and forests have none
        temperature = metadata["temperature"]
        task = TASKS[info.task].from_dict(metadata["task"])
        if isinstance(made, SklearnModel):
            model = made.load({name: tensor.numpy() for name, tensor in tensors.items()})
        else:
            fold_dir.load_weights(made)
            model = made.to(device).eval()
        check_metadata(info, vocabulary, temperature)
    except EginError:
        raise
    except Exception as error:
        reason = one_line(error)[:200]
        raise TrainingError(
            f"{fold_dir.weights}: damaged or incomplete ({reason}); {fold_dir.remedy}"
        ) from error
    return TrainedFold(
        number=fold_dir.fold,
        info=info,
        vocabulary=vocabulary,
        temperature=temperature,
        transforms=tuple(transforms),
        task=task,
        model=model,
        options=options,
        device=torch.device(device),
    )


def check_metadata(info: DatasetInfo, vocabulary: Vocabulary | None, temperature: float | None) -> None:
    """Raise a ValueError where parts of the metadata contradict each other."""
    if len(info.class_names) not in (0, info.classes):
        raise ValueError(f"{info.classes} classes have {len(info.class_names)} names")
    if vocabulary and (vocabulary.node.names, vocabulary.edge.names) != (info.node_names, info.edge_names):
        raise ValueError("the vocabulary has other features than the data")
    if temperature is not None and not 0 < temperature < math.inf:
        raise ValueError(f"the temperature is {temperature}")


def import_model(node: dict) -> Callable[..., Any]:
    """The constructor of a model of any class, with its options; the import runs the code of its module."""
    module, _, name = str(node["_target_"]).rpartition(".")
    options = {key: value for key, value in node.items() if not key.startswith("_")}
    try:
        return partial(getattr(import_module(module), name), **options)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{node['_target_']} cannot be imported ({error})") from None


def empty_dataset(info: DatasetInfo) -> GraphDataset:
    """A dataset without graphs, by which transforms tell the features that they make."""
    none, offsets = torch.zeros(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    features = torch.zeros(0, info.node_dim), torch.zeros(0, info.edge_dim)
    return GraphDataset(replace(info, graphs=0), none, offsets, offsets, none, none, *features)


def shorten_list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" … ({len(names)})" if len(names) > 8 else "")
