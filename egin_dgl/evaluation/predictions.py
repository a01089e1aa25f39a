"""The answers of a cross-validation: each graph as the fold that tested it saw it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from egin_dgl.data.splits import Split
from egin_dgl.evaluation.calibration import fold_temperature, probabilities
from egin_dgl.evaluation.history import kept_record
from egin_dgl.evaluation.result import FoldResult


@dataclass(frozen=True)
class Prediction:
    graph: int
    fold: int
    label: int
    predicted: int
    probabilities: tuple[float, ...]
    epoch: int  # of a kernel machine, the row of its history
    chosen: str  # how: "validation", or what stands in for it where there is none
    calibrated: bool


def predictions_of(results: Sequence[FoldResult], splits: Mapping[int, Split]) -> Iterator[Prediction]:
    """One for each test graph of each fold, by the model that the fold kept."""
    for result in results:
        record, temperature = kept_record(result.history), fold_temperature(result)
        how = "validation" if record.validated else ("last" if record.C is None else "middle C")
        found = probabilities(result.test_logits[record.epoch - 1], temperature)
        rows = zip(splits[result.fold].test, result.test_labels.tolist(), found, strict=True)
        for graph, label, row in rows:
            yield Prediction(
                graph=int(graph),
                fold=result.fold,
                label=label,
                predicted=int(row.argmax()),
                probabilities=tuple(row.tolist()),
                epoch=record.epoch,
                chosen=how,
                calibrated=temperature is not None,
            )
