"""Load a TU dataset, through a cache of prepared tensors."""

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from egin_dgl.data.dataset import TENSORS, DatasetInfo, GraphDataset, Options, from_arrays
from egin_dgl.data.download import DEFAULT_URL
from egin_dgl.data.features import Vocabulary
from egin_dgl.data.sources import cache_dir, find_raw
from egin_dgl.data.tu import read_tu
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import atomic_path

# Of the processed cache and the encoding: raised when either changes, so that old files are not read.
FORMAT = 2

log = logging.getLogger(__name__)


def load_tu(
    name: str,
    root: str | os.PathLike | None = None,
    url: str | None = DEFAULT_URL,
    edges: str = "symmetric",
    self_loops: str = "remove",
    node_features: str = "degree",
    use_edge_features: bool = True,
    expect: Mapping[str, int | Sequence[int]] | None = None,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """Load a TU dataset, from the processed cache where the same files were prepared with the same options.

    `expect` guards a config against foreign files: graphs, classes, node_dim, edge_dim, each a number or a list of
    accepted ones. `vocabulary` and `class_names` of a training set are for prediction (see `from_arrays`).
    """
    options = Options(edges, self_loops, node_features, use_edge_features)
    if wrong := set(expect or {}) - {"graphs", "classes", "node_dim", "edge_dim"}:
        raise ConfigError(
            f"expect knows graphs, classes, node_dim and edge_dim, not {', '.join(sorted(wrong))}"
        )
    raw = find_raw(name, root, url)
    content = {"format": FORMAT, "raw": raw.digest(), **asdict(options)}
    content |= {
        "vocabulary": vocabulary and vocabulary.to_json(),
        "classes": class_names and list(class_names),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    path = cache_dir() / "processed" / f"{name}-{digest[:20]}.safetensors"

    dataset = _restore(path, digest, raw.origin) if cache else None
    if dataset is None:
        arrays = read_tu(raw, need_labels=class_names is None)
        reuse = {"vocabulary": vocabulary, "class_names": class_names}
        dataset = from_arrays(arrays, name, options, **reuse, digest=digest, origin=raw.origin)
        if dataset.info.classes < 2:
            only = dataset.info.class_names[0]
            raise DataError(
                f"{raw.path('graph_labels')} has one class only ({only}); there is nothing to learn"
            )
        if cache:
            _store(dataset, path)
    _check(dataset, expect or {}, use_edge_features)
    log.info("%s: %s", name, raw.origin)
    return dataset


def _check(dataset: GraphDataset, expect: Mapping[str, int | Sequence[int]], use_edge_features: bool) -> None:
    for key, value in expect.items():
        if value is None or (key == "edge_dim" and not use_edge_features):
            continue
        accepted = [value] if isinstance(value, int) else list(value)
        if (found := getattr(dataset.info, key)) not in accepted:
            wanted = " or ".join(map(str, accepted))
            raise DataError(
                f"{dataset.info.name}: expected {key} {wanted}, found {found} in {dataset.origin}; "
                "these are other files than the config was written for"
            )


def _checksum(tensors: Mapping[str, torch.Tensor]) -> int:
    """Against damage, not malice: safetensors checks a file's length but not its bytes."""
    total = 0
    for key in TENSORS:
        total = zlib.crc32(tensors[key].numpy(), total)
    return total


def _store(dataset: GraphDataset, path: Path) -> None:
    tensors = {key: getattr(dataset, key).contiguous() for key in TENSORS}
    header = {"info": asdict(dataset.info), "digest": dataset.digest, "notes": dataset.notes}
    header |= {"vocabulary": dataset.vocabulary.to_json(), "checksum": _checksum(tensors)}
    try:
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata={"dataset": json.dumps(header)})
    except (OSError, SafetensorError) as error:  # a full or read-only disk costs time, not the run
        log.warning("cannot cache %s: %s", path, error)


def _restore(path: Path, digest: str, origin: str) -> GraphDataset | None:
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            tensors = {key: file.get_tensor(key) for key in TENSORS}
            header = json.loads(file.metadata()["dataset"])
        if header["checksum"] != _checksum(tensors) or header["digest"] != digest:
            raise ValueError("checksum does not match")
        info = {
            key: tuple(value) if isinstance(value, list) else value for key, value in header["info"].items()
        }
        notes, vocabulary = tuple(header["notes"]), Vocabulary.from_json(header["vocabulary"])
        for note in notes:  # as when the files were first read
            log.warning(note)
        dataset = GraphDataset(DatasetInfo(**info), **tensors, digest=digest, origin=origin)
        return replace(dataset, vocabulary=vocabulary, notes=notes)
    except (OSError, SafetensorError, DataError, KeyError, TypeError, ValueError) as error:
        log.warning("%s is damaged (%s) and is made again", path, error)
        return None
