"""A fold on disk: the state to resume from and in the end the result, the kept weights, the history. No pickle is read.

last.pt            all that the fold needs to go on after its last epoch; once it has ended, its result
best.safetensors   weights and buffers of the kept model, or the arrays of a kernel machine, and what those who load them
                   must know: vocabulary, transforms, temperature
history.csv        a line an epoch
grid_0, grid_1, …  folds of the candidates of an inner selection
events.out.…       TensorBoard's
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from egin_dgl.data.tensor_file import checksum, map_tensors, write_tensors
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.files import write_text
from egin_dgl.runs.checkpoint_file import read_checkpoint, write_checkpoint
from egin_dgl.runs.history_file import history_of, history_text, read_history

RESULT = (
    "test_labels",
    "parameters",
    "chosen",
    "validation_logits",
    "validation_labels",
)  # beside the history
HEADER = "egin_dgl"  # of the weights' file: metadata as JSON
CHECKSUM = "crc32"  # of weights and metadata, among the metadata


@dataclass(frozen=True)
class Progress:
    """Where a fold was interrupted: its epochs so far, and the state dicts of model, optimizer, …"""

    history: History
    test_logits: list[Tensor]
    states: dict[str, dict]


@dataclass(frozen=True)
class FoldDir:
    path: Path
    fold: int

    @property
    def checkpoint(self) -> Path:
        return self.path / "last.pt"

    @property
    def weights(self) -> Path:
        return self.path / "best.safetensors"

    @property
    def history(self) -> Path:
        return self.path / "history.csv"

    @property
    def epochs(self) -> int:
        """Those that are done, as far as they are kept."""
        try:
            return len(read_history(self.history))
        except (OSError, KeyError, TypeError, ValueError):  # none, or damaged: it is made again
            return 0

    def candidate(self, number: int) -> "FoldDir":
        """Of an inner selection."""
        return FoldDir(self.path / f"grid_{number}", self.fold)

    def progress(self) -> Progress | FoldResult | None:
        """The result of a fold that has ended, the state of one that was interrupted, or None if there is nothing."""
        if not self.checkpoint.exists():
            return None
        try:
            content = read_checkpoint(self.checkpoint)
            if (fold := content.pop("fold", self.fold)) != self.fold:
                raise TrainingError(f"{self.checkpoint}: the checkpoint of fold {fold}")
            history = history_in(content.pop("history"))
            logits = content.pop("test_logits")
            if not content.pop("finished"):
                return Progress(history, list(logits), content)
            labels, parameters = content["test_labels"], content["parameters"]
            later = map(content.get, RESULT[2:])  # earlier versions did not keep them all
            return FoldResult(self.fold, history, logits, labels, parameters, *later)
        except TrainingError as error:
            raise TrainingError(f"{error}; {self.remedy}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise TrainingError(
                f"{self.checkpoint}: not a checkpoint of this version ({type(error).__name__}: {error}); {self.remedy}"
            ) from error

    @property
    def remedy(self) -> str:
        """What to do where a file of the fold is of no use."""
        return f"remove the folder {self.path} to train this fold anew"

    def mend(self, result: FoldResult) -> None:
        """Write the history again where it is not the result's."""
        text = history_text(result.history)
        if not self.history.is_file() or self.history.read_bytes() != text.encode():
            write_text(self.history, text)

    def save_progress(self, progress: Progress) -> None:
        self.save(progress.history, torch.stack(progress.test_logits), finished=False, **progress.states)

    def save_result(self, result: FoldResult) -> None:
        """Keep it in place of the state to resume from."""
        kept = {name: getattr(result, name) for name in RESULT}
        self.save(result.history, result.test_logits, finished=True, **kept)

    def save(self, history: History, test_logits: Tensor, **content: object) -> None:
        # One tensor of logits and one text, not lists: saving thousands of small objects takes longer than the epochs
        # they come from.
        text = history_text(history)
        write_text(self.history, text)
        whole = {"fold": self.fold, "history": text, "test_logits": test_logits, **content}
        write_checkpoint(self.checkpoint, whole)

    def save_weights(self, model: nn.Module, metadata: dict) -> None:
        """Weights and buffers, with `metadata` as JSON in the header of the same file."""
        self.save_tensors(model.state_dict(), metadata)

    def save_tensors(self, tensors: Mapping[str, Tensor], metadata: dict) -> None:
        """What is kept of a trained model, whatever its kind."""
        metadata = json.loads(json.dumps(metadata))  # as it is read again: JSON has no tuples
        header = json.dumps(metadata | {CHECKSUM: checksum(tensors, metadata)})
        write_tensors(self.weights, tensors, {HEADER: header})

    def load_weights(self, model: nn.Module) -> dict:
        """Put the weights into `model` and return the metadata saved with them."""
        tensors, metadata = self.load_tensors()
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            raise TrainingError(
                f"{self.weights}: the weights do not fit the model ({str(error).splitlines()[-1].strip()})"
            ) from error
        return metadata

    def load_tensors(self) -> tuple[dict[str, Tensor], dict]:
        """What was kept, and the metadata saved with it."""
        path = self.weights
        try:
            state, header = map_tensors(path)
            metadata = json.loads(header.get(HEADER, "{}"))
            kept = metadata.pop(CHECKSUM, None)  # an earlier version kept none
            if kept is not None and kept != checksum(state, metadata):
                raise ValueError("the checksum does not match")
            return state, metadata
        except FileNotFoundError:
            raise TrainingError(f"{path}: no such checkpoint; {self.remedy}") from None
        except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
            raise TrainingError(f"{path}: not a readable checkpoint ({error}); {self.remedy}") from error


def history_in(kept: str | list[dict]) -> History:
    """Of a checkpoint: the text of history.csv; an earlier version kept a record for each epoch."""
    return history_of(kept) if isinstance(kept, str) else [EpochRecord(**record) for record in kept]
