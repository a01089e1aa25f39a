"""The directory of a fold: checkpoint, weights, history. Nothing in it is unpickled.

last.pt            the state to resume from; of a finished fold its result
best.safetensors   weights and buffers of the selected model, or the arrays of a kernel machine, with the metadata to
                   load them: vocabulary, transforms, temperature
history.csv        one line per epoch
grid_0, grid_1, …  one fold directory per candidate of a nested cross-validation
events.out.…       TensorBoard
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
from egin_dgl.evaluation.history import FoldResult, History
from egin_dgl.files import write_text
from egin_dgl.runs.checkpoint_file import read_checkpoint, write_checkpoint
from egin_dgl.runs.csv_files import history_text, parse_history, read_history

# Of a finished fold, in addition to history and test logits.
RESULT = ("test_labels", "parameters", "chosen", "validation_logits", "validation_labels")
HEADER = "egin_dgl"  # entry of the safetensors header: metadata as JSON
CHECKSUM = "crc32"  # entry of the metadata: checksum of weights and metadata


@dataclass(frozen=True)
class Progress:
    """State of an interrupted fold: its epochs so far, and the state dicts of model, optimizer, …"""

    history: History
    test_logits: list[Tensor]
    states: dict[str, dict]


@dataclass(frozen=True)
class FoldDir:
    """Files of one fold.

    Args:
        path: the directory, which need not exist yet.
        fold: number of the fold.
    """

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
        """Number of epochs in the history."""
        try:
            return len(read_history(self.history))
        except (OSError, KeyError, TypeError, ValueError):  # missing or damaged: it is written again
            return 0

    def candidate(self, number: int) -> "FoldDir":
        """Return the directory of a candidate of a nested cross-validation."""
        return FoldDir(self.path / f"grid_{number}", self.fold)

    def progress(self) -> Progress | FoldResult | None:
        """Return the result of a finished fold, the state of an interrupted one, or None."""
        if not self.checkpoint.exists():
            return None
        try:
            content = read_checkpoint(self.checkpoint)
            if (fold := content.pop("fold")) != self.fold:
                raise TrainingError(f"{self.checkpoint}: the checkpoint of fold {fold}")
            history = parse_history(content.pop("history"))
            logits = content.pop("test_logits")
            if not content.pop("finished"):
                return Progress(history, list(logits), content)
            return FoldResult(self.fold, history, logits, *(content[name] for name in RESULT))
        except TrainingError as error:
            raise TrainingError(f"{error}; {self.remedy}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TrainingError(
                f"{self.checkpoint}: not a checkpoint of this version ({type(error).__name__}: {error}); {self.remedy}"
            ) from error

    @property
    def remedy(self) -> str:
        """What to do about a damaged file."""
        return f"remove the directory {self.path} to train this fold again"

    def repair(self, result: FoldResult) -> None:
        """Write the history again if it differs from that of the result."""
        text = history_text(result.history)
        if not self.history.is_file() or self.history.read_bytes() != text.encode():
            write_text(self.history, text)

    def save_progress(self, progress: Progress) -> None:
        self.save(progress.history, torch.stack(progress.test_logits), finished=False, **progress.states)

    def save_result(self, result: FoldResult) -> None:
        """Replace the state to resume from by the result."""
        kept = {name: getattr(result, name) for name in RESULT}
        self.save(result.history, result.test_logits, finished=True, **kept)

    def save(self, history: History, test_logits: Tensor, **content: object) -> None:
        # One tensor of logits and one text: saving thousands of small objects takes longer than training.
        text = history_text(history)
        write_text(self.history, text)
        whole = {"fold": self.fold, "history": text, "test_logits": test_logits, **content}
        write_checkpoint(self.checkpoint, whole)

    def save_weights(self, model: nn.Module, metadata: dict) -> None:
        """Save weights and buffers, with `metadata` as JSON in the header of the file."""
        self.save_tensors(model.state_dict(), metadata)

    def save_tensors(self, tensors: Mapping[str, Tensor], metadata: dict) -> None:
        """Save the tensors of a trained model of any kind."""
        metadata = json.loads(json.dumps(metadata))  # as it is read back: JSON has no tuples
        header = json.dumps(metadata | {CHECKSUM: checksum(tensors, metadata)})
        write_tensors(self.weights, tensors, {HEADER: header})

    def load_weights(self, model: nn.Module) -> dict:
        """Load the weights into `model` and return the metadata saved with them."""
        tensors, metadata = self.load_tensors()
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            raise TrainingError(
                f"{self.weights}: the weights do not fit the model ({str(error).splitlines()[-1].strip()})"
            ) from error
        return metadata

    def load_tensors(self) -> tuple[dict[str, Tensor], dict]:
        """Return the saved tensors and metadata."""
        path = self.weights
        try:
            state, header = map_tensors(path)
            metadata = json.loads(header.get(HEADER, "{}"))
            if metadata.pop(CHECKSUM, None) != checksum(state, metadata):
                raise ValueError("the checksum does not match")
            return state, metadata
        except FileNotFoundError:
            raise TrainingError(f"{path}: no such checkpoint; {self.remedy}") from None
        except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
            raise TrainingError(f"{path}: not a readable checkpoint ({error}); {self.remedy}") from error
