"""What is left of a trained fold: its history and the scores of its graphs."""

from dataclasses import dataclass

from torch import Tensor

from egin_dgl.evaluation.history import History


@dataclass(frozen=True, repr=False)
class FoldResult:
    """The history and, for every epoch, the logits of the test part: (epochs, test graphs, classes).

    Of the validation part there are those of the kept model, at the epoch that it chose: (validation graphs, classes),
    for whoever judges its probabilities. None in folds that were finished before they were kept.
    """

    fold: int
    history: History
    test_logits: Tensor
    test_labels: Tensor
    parameters: int
    chosen: dict[str, object] | None = None  # settings that an inner selection preferred
    validation_logits: Tensor | None = None
    validation_labels: Tensor | None = None

    def __repr__(self) -> str:
        last = f", test accuracy {self.history[-1].test_accuracy:.3f} after the last" if self.history else ""
        tested = f"{len(self.test_labels)} test graphs, {self.parameters} parameters"
        return f"FoldResult(fold {self.fold}: {len(self.history)} epochs{last}; {tested})"
