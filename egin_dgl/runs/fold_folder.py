"""Checkpoints without pickle: weights in safetensors, the state to resume from in a file read with `weights_only`."""

import json
import pickle
from dataclasses import asdict
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from egin_dgl.errors import TrainingError
from egin_dgl.evaluation.history import EpochRecord, History
from egin_dgl.files import atomic_path


def save_weights(path: str | Path, model: nn.Module, metadata: dict) -> None:
    """Weights and buffers, with `metadata` as JSON in the header of the same file."""
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    with atomic_path(path) as temporary:
        safetensors.torch.save_file(state, temporary, {"egin_dgl": json.dumps(metadata)})


def load_weights(path: str | Path, model: nn.Module) -> dict:
    """Put the weights into `model` and return the metadata saved with them."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get("egin_dgl", "{}"))
        model.load_state_dict(safetensors.torch.load_file(path))
    except FileNotFoundError:
        raise TrainingError(f"{path}: no such checkpoint") from None
    except SafetensorError as error:
        raise TrainingError(f"{path}: not a readable checkpoint ({error})") from error
    except RuntimeError as error:
        raise TrainingError(
            f"{path}: the weights do not fit the model ({str(error).splitlines()[-1].strip()})"
        ) from error
    return metadata


def save_progress(
    path: str | Path, history: History, test_logits: list[Tensor], **states: dict | None
) -> None:
    """All that a fold needs to go on after its last epoch. `states` are state dicts of model, optimizer, …"""
    # One tensor, not a list: saving thousands of small ones takes longer than the epochs they come from.
    content = {
        "history": [asdict(record) for record in history],
        "test_logits": torch.stack(test_logits),
    } | states
    with atomic_path(path) as temporary:
        torch.save(content, temporary)


def load_progress(path: str | Path) -> dict | None:
    """What `save_progress` wrote, or None if there is none."""
    if not Path(path).exists():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise TrainingError(
            f"{path}: not a readable checkpoint; remove its fold's folder to train it anew"
        ) from error
    content["history"] = [EpochRecord(**record) for record in content["history"]]
    content["test_logits"] = list(content["test_logits"])
    return content
