"""Load a TU dataset, through a cache of prepared tensors."""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from torch import Tensor

from egin_dgl.data.dataset import TENSORS, DatasetInfo, GraphDataset, GraphOptions, from_arrays
from egin_dgl.data.download import DEFAULT_URL
from egin_dgl.data.features import Vocabulary
from egin_dgl.data.sources import find_raw, naming_the_cache
from egin_dgl.data.tensor_cache import TensorCache
from egin_dgl.data.tu import read_tu
from egin_dgl.errors import ConfigError, DataError

# Of the processed cache and the encoding: raised when either changes, so that old files are not read.
FORMAT = 2

log = logging.getLogger(__name__)


@naming_the_cache
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
    options = GraphOptions(edges, self_loops, node_features, use_edge_features)
    if wrong := set(expect or {}) - {"graphs", "classes", "node_dim", "edge_dim"}:
        raise ConfigError(
            f"expect knows graphs, classes, node_dim and edge_dim, not {', '.join(sorted(wrong))}"
        )
    raw = find_raw(name, root, url)
    content = {
        "format": FORMAT,
        "raw": raw.digest(),
        **asdict(options),
        "vocabulary": vocabulary and vocabulary.to_json(),
        "classes": class_names and list(class_names),
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    kept = processed(digest, name)

    dataset = kept.read(partial(_restore, digest=digest, origin=raw.origin)) if cache else None
    if dataset is None:
        arrays = read_tu(raw, need_labels=class_names is None)
        dataset = from_arrays(
            arrays,
            name,
            options,
            vocabulary=vocabulary,
            class_names=class_names,
            digest=digest,
            origin=raw.origin,
        )
        if dataset.info.classes < 2:
            only = dataset.info.class_names[0]
            raise DataError(
                f"{raw.path('graph_labels')} has one class only ({only}); there is nothing to learn"
            )
        if cache:
            kept.write({key: getattr(dataset, key) for key in TENSORS}, _record(dataset))
    _check(dataset, expect or {}, use_edge_features)
    log.info("%s: %s", name, raw.origin)
    return dataset


def processed(digest: str, name: str) -> TensorCache:
    """Where a prepared dataset is kept."""
    return TensorCache.of("processed", digest, name)


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


def _record(dataset: GraphDataset) -> dict:
    """What the cache keeps beside the tensors."""
    vocabulary = dataset.vocabulary and dataset.vocabulary.to_json()
    return {"info": asdict(dataset.info), "notes": dataset.notes, "vocabulary": vocabulary}


def _restore(tensors: dict[str, Tensor], record: dict, digest: str, origin: str) -> GraphDataset:
    for note in record["notes"]:  # as when the files were first read
        log.warning(note)
    return GraphDataset(
        DatasetInfo.from_dict(record["info"]),
        **tensors,
        digest=digest,
        origin=origin,
        vocabulary=Vocabulary.from_json(record["vocabulary"]),
        notes=tuple(record["notes"]),
    )
