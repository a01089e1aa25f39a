"""Test predictions of a cross-validation: each graph by the fold that has it in its test set."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from egin_dgl.data.splits import Split
from egin_dgl.evaluation.calibration import fold_temperature, probabilities
from egin_dgl.evaluation.history import selected_record
from egin_dgl.evaluation.result import FoldResult


@dataclass(frozen=True)
class Prediction:
    graph: int
    fold: int
    label: int
    predicted: int
    probabilities: tuple[float, ...]
    epoch: int  # of a kernel machine, the row of its history
    chosen: str  # how the epoch was selected: "validation", "last" or "middle C"
    calibrated: bool


def test_predictions(results: Sequence[FoldResult], splits: Mapping[int, Split]) -> Iterator[Prediction]:
    """One prediction per test graph and fold, by the model that the fold saved."""
    for result in results:
        record, temperature = selected_record(result.history), fold_temperature(result)
        how = "validation" if record.has_validation else ("last" if record.C is None else "middle C")
        rows = probabilities(result.test_logits[record.epoch - 1], temperature)
        graphs = splits[result.fold].test
        for graph, label, row in zip(graphs, result.test_labels.tolist(), rows, strict=True):
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
