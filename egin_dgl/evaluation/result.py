"""Result of a trained fold."""

from dataclasses import dataclass

from torch import Tensor

from egin_dgl.evaluation.history import History


@dataclass(frozen=True, repr=False)
class FoldResult:
    """History and logits of one fold.

    Shapes: test_logits (epochs, test graphs, classes); validation_logits (validation graphs, classes), of the saved
    model, None without a validation set.
    """

    fold: int
    history: History
    test_logits: Tensor
    test_labels: Tensor
    parameters: int
    chosen: dict[str, object] | None = None  # settings selected by nested cross-validation
    validation_logits: Tensor | None = None
    validation_labels: Tensor | None = None

    def __repr__(self) -> str:
        last = f", test accuracy {self.history[-1].test_accuracy:.3f} after the last" if self.history else ""
        sizes = f"{len(self.test_labels)} test graphs, {self.parameters} parameters"
        return f"FoldResult(fold {self.fold}: {len(self.history)} epochs{last}; {sizes})"
