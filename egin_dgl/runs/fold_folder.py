"""A fold on disk: the state to resume from and in the end the result, the kept weights, the history. No pickle is read.

last.pt            all that the fold needs to go on after its last epoch; once it has ended, its result
best.safetensors   weights and buffers of the kept model, or the arrays of a kernel machine, and what those who load them
                   must know: vocabulary, transforms, temperature
history.csv        a line an epoch
grid_0, grid_1, …  folds of the candidates of an inner selection
events.out.…       TensorBoard's
"""

import json
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.evaluation.result import FoldResult
from egin_dgl.files import atomic_path
from egin_dgl.runs.history_file import write_history

RESULT = (
    "test_labels",
    "parameters",
    "chosen",
    "validation_logits",
    "validation_labels",
)  # beside the history


@dataclass(frozen=True)
class Progress:
    """Where a fold was interrupted: its epochs so far, and the state dicts of model, optimizer, …"""

    history: History
    test_logits: list[Tensor]
    states: dict[str, dict]


@dataclass(frozen=True)
class FoldFolder:
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

    def candidate(self, number: int) -> "FoldFolder":
        """Of an inner selection."""
        return FoldFolder(self.path / f"grid_{number}", self.fold)

    def progress(self) -> Progress | FoldResult | None:
        """The result of a fold that has ended, the state of one that was interrupted, or None if there is nothing."""
        if not self.checkpoint.exists():
            return None
        try:
            content = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise TrainingError(
                f"{self.checkpoint}: not a readable checkpoint; remove its fold's folder to train it anew"
            ) from error
        history = [EpochRecord(**record) for record in content.pop("history")]
        logits = content.pop("test_logits")
        if not content.pop("finished"):
            return Progress(history, list(logits), content)
        return FoldResult(self.fold, history, logits, *map(content.get, RESULT))

    def save_progress(self, progress: Progress) -> None:
        write_history(self.history, progress.history)
        self.save(progress.history, torch.stack(progress.test_logits), finished=False, **progress.states)

    def save_result(self, result: FoldResult) -> None:
        """Keep it in place of the state to resume from."""
        write_history(self.history, result.history)
        kept = {name: getattr(result, name) for name in RESULT}
        self.save(result.history, result.test_logits, finished=True, **kept)

    def save(self, history: History, test_logits: Tensor, **content: object) -> None:
        # One tensor of logits, not a list: saving thousands of small ones takes longer than the epochs they come from.
        records = [asdict(record) for record in history]
        with atomic_path(self.checkpoint) as temporary:
            torch.save({"history": records, "test_logits": test_logits, **content}, temporary)

    def save_weights(self, model: nn.Module, metadata: dict) -> None:
        """Weights and buffers, with `metadata` as JSON in the header of the same file."""
        self.save_tensors(model.state_dict(), metadata)

    def save_tensors(self, tensors: Mapping[str, Tensor], metadata: dict) -> None:
        """What is kept of a trained model, whatever its kind."""
        state = {name: tensor.contiguous() for name, tensor in tensors.items()}
        with atomic_path(self.weights) as temporary:
            safetensors.torch.save_file(state, temporary, {"egin_dgl": json.dumps(metadata)})

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
            with safe_open(path, framework="pt") as file:
                metadata = json.loads((file.metadata() or {}).get("egin_dgl", "{}"))
            return safetensors.torch.load_file(path), metadata
        except FileNotFoundError:
            raise TrainingError(f"{path}: no such checkpoint") from None
        except SafetensorError as error:
            raise TrainingError(f"{path}: not a readable checkpoint ({error})") from error
