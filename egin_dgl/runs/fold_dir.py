"""The directory of a fold: checkpoint, weights, history. Nothing in it is unpickled.

last.pt            the state to resume from; of a finished fold its result
best.safetensors   weights and buffers of the selected model, or the arrays of a kernel machine, with the metadata to
                   load them: vocabulary, transforms, temperature
history.csv        one line per epoch, in full precision
grid_0, grid_1, …  one fold directory per candidate of a nested cross-validation
events.out.…       TensorBoard
"""

import csv
import io
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from egin_dgl.data.tensor_file import checksum, map_tensors, write_tensors
from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import EpochRecord, FoldResult, History
from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.files import write_bytes, write_text
from egin_dgl.runs.json_files import CHECKSUM
from egin_dgl.runs.settings import FileIn

# Of a finished fold, in addition to history and test logits.
RESULT = ("test_labels", "parameters", "chosen", "validation_logits", "validation_labels", "task")
METRIC = "metric"  # of a record: in the names of columns
FINAL = "temperature"  # metadata of the weights of a finished fold only; null without a validation set
HEADER = "egin_dgl"  # entry of the safetensors header: metadata as JSON
MARK = b"egin_dgl crc32 "  # before the checksum of last.pt
DIGITS = 8  # hexadecimal, of that checksum
DAMAGED = (OSError, KeyError, TypeError, ValueError, AttributeError)  # while reading a damaged file


@dataclass(frozen=True)
class Progress:
    """State of an interrupted fold: its epochs so far, and the state dicts of model, optimizer, …"""

    history: History
    test_logits: list[Tensor]
    states: dict[str, dict]


@dataclass(frozen=True)
class FoldDir:
    """Files of one fold."""

    path: Path  # need not exist yet
    fold: int

    checkpoint = FileIn("last.pt")
    weights = FileIn("best.safetensors")
    history = FileIn("history.csv")

    @property
    def epochs(self) -> int:
        try:
            return len(read_history(self.history))
        except DAMAGED:  # or missing: it is written again
            return 0

    @property
    def remedy(self) -> str:
        return f"remove the directory {self.path} to train this fold again"

    @property
    def has_final_weights(self) -> bool:
        """Whether the weights are those of a finished fold, which have a temperature, or cannot be read."""
        try:
            return FINAL in self.load_tensors()[1]
        except TrainingError:
            return self.weights.exists()

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
                raise ValueError(f"it is of fold {fold}")
            history = parse_history(content.pop("history"))
            logits = content.pop("test_logits")
            if not content.pop("finished"):
                return Progress(history, list(logits), content)
            return FoldResult(self.fold, history, logits, *(content[name] for name in RESULT))
        except DAMAGED as error:
            raise self.unreadable(self.checkpoint, error) from error

    def unreadable(self, path: Path, error: Exception) -> TrainingError:
        return TrainingError(f"{path}: not a readable checkpoint ({error}); {self.remedy}")

    def verify(self, result: FoldResult) -> FoldResult:
        """Check the weights of a finished fold, and write its history again if it differs."""
        self.load_tensors()
        text = history_text(result.history)
        if not self.history.is_file() or self.history.read_bytes() != text.encode():
            write_text(self.history, text)
        return result

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
        metadata = json.loads(json.dumps(metadata))  # as it is read back: JSON has no tuples
        header = json.dumps(metadata | {CHECKSUM: checksum(tensors, metadata)})
        write_tensors(self.weights, tensors, {HEADER: header})

    def load_weights(self, model: nn.Module) -> dict:
        """Load the weights into `model` and return the metadata saved with them."""
        tensors, metadata = self.load_tensors()
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise TrainingError(f"{self.weights}: the weights do not fit the model ({reason})") from error
        return metadata

    def load_tensors(self) -> tuple[dict[str, Tensor], dict]:
        try:
            tensors, header = map_tensors(self.weights)
            metadata = json.loads(header.get(HEADER, "{}"))
            if metadata.pop(CHECKSUM, None) != checksum(tensors, metadata):
                raise ValueError("the checksum does not match")
            return tensors, metadata
        except (SafetensorError, *DAMAGED) as error:
            raise self.unreadable(self.weights, error) from error


def write_checkpoint(path: Path, content: dict) -> None:
    """Write a file of ``torch.save`` with a checksum.

    torch writes a zip file and verifies none of its checksums. Ours is the comment at the end of the zip file, which
    every reader of such files ignores.
    """
    memory = io.BytesIO()
    torch.save(content, memory)
    length = (len(MARK) + DIGITS).to_bytes(2, "little")
    # A zip file without a comment ends in the length of the comment, two zero bytes.
    marked = memory.getvalue()[:-2] + length + MARK
    write_bytes(path, marked + b"%08x" % zlib.crc32(marked))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the content, read with ``weights_only``; a damaged file is a ValueError."""
    file = path.read_bytes()
    if not file[:-DIGITS].endswith(MARK) or file[-DIGITS:] != b"%08x" % zlib.crc32(file[:-DIGITS]):
        raise ValueError("it is damaged")
    try:
        return torch.load(io.BytesIO(file), map_location="cpu", weights_only=True)
    except Exception as error:  # zip files and pickles of others fail in many ways
        raise ValueError(type(error).__name__) from error


def history_text(history: Iterable[EpochRecord]) -> str:
    """CSV of a history; the columns of scores have the names of their metrics: val_accuracy, monitor_auroc, …"""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    history = list(history)
    columns = [field.name for field in fields(EpochRecord) if field.name != METRIC]
    names = [name for name in columns if any(getattr(record, name) is not None for record in history)]
    metric = history[0].metric if history else "score"
    writer.writerow(name.replace("_score", f"_{metric}") for name in names)
    for record in history:
        # repr round-trips every float; NaN is an empty cell.
        values = (getattr(record, name) for name in names)
        writer.writerow("" if v is None or math.isnan(v) else repr(v) for v in values)
    return text.getvalue()


def read_history(path: str | Path) -> History:
    return parse_history(Path(path).read_text(encoding="utf-8"))


def parse_history(text: str) -> History:
    header, *rows = csv.reader(io.StringIO(text))
    fixed = {field.name for field in fields(EpochRecord)}
    scores = [name for name in header if name.startswith("test_") and name != "test_loss"]
    if len(scores) != 1 or (metric := scores[0].removeprefix("test_")) not in METRICS:
        raise ValueError("it has no column of test scores")
    named: dict[str, Any] = {METRIC: metric}
    names = [name if name in fixed else f"{name.partition('_')[0]}_score" for name in header]
    records = []
    for row in rows:
        values = {name: float(value or "nan") for name, value in zip(names, row, strict=True)}
        records.append(EpochRecord(**named | values | {"epoch": int(values["epoch"])}))
    return records
