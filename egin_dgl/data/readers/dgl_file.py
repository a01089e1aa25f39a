"""Graphs that `dgl.save_graphs` wrote, with their classes among the tensors it keeps beside them."""

import faulthandler
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import dgl
import torch

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import GraphDataset, GraphOptions
from egin_dgl.data.prepare import content_hash, prepare
from egin_dgl.data.readers.columns import ColumnSelection
from egin_dgl.data.readers.graph_objects import graphs_to_arrays
from egin_dgl.data.readers.raw_files import GIB
from egin_dgl.data.targets import OneColumn
from egin_dgl.data.vocabulary import Vocabulary
from egin_dgl.errors import ConfigError, DataError

# How DGL's files begin; a foreign file would be read as sizes, and memory taken for them.
MAGIC = bytes.fromhex("3fa1b446f04f2edd")
LONGEST = 300  # seconds of computing to read a file


def load_dgl_file(
    path: str,
    target: OneColumn | None = None,
    node_labels: Sequence[str] | None = None,
    node_attributes: Sequence[str] | None = None,
    edge_labels: Sequence[str] | None = None,
    edge_attributes: Sequence[str] | None = None,
    edges: Literal["symmetric", "as_given"] = "as_given",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    use_edge_features: bool = True,
    name: str | None = None,
    cache: bool = True,
    vocabulary: Vocabulary | None = None,
    class_names: Sequence[str] | None = None,
) -> GraphDataset:
    """Load a file of DGL graphs, from the processed cache where the same file was prepared with the same options."""
    options = GraphOptions(edges, self_loops, node_features, use_edge_features)
    chosen = (
        ColumnSelection.of(node_labels, node_attributes, "node"),
        ColumnSelection.of(edge_labels, edge_attributes, "edge"),
    )
    file = Path(path).expanduser()
    reading = {"target": str(target), "columns": [(c.labels, c.attributes) for c in chosen]}
    return prepare(
        partial(read_dgl_file, file, target, *chosen, need_labels=class_names is None),
        name or file.stem,
        options,
        source={"graphs": content_hash([file]), **reading},
        origin=str(file),
        labels_in=str(file),
        cache=cache,
        vocabulary=vocabulary,
        class_names=class_names,
    )


def read_dgl_file(
    path: Path,
    target: str | None = None,
    nodes: ColumnSelection | None = None,
    edges: ColumnSelection | None = None,
    need_labels: bool = True,
) -> GraphArrays:
    """Read and check all graphs; `target` names the tensor of their classes where there are several."""
    if not is_dgl_file(path):
        raise DataError(f"{path} is not a file that dgl.save_graphs wrote")
    try:
        try_apart(partial(_load, path), room=2 * GIB + 50 * path.stat().st_size)
        graphs, tensors = _load(path)
        return graphs_to_arrays(graphs, _classes(path, tensors, target, need_labels), nodes, edges)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _load(path: Path) -> tuple[list[dgl.DGLGraph], dict[str, torch.Tensor]]:
    try:
        graphs, tensors = dgl.load_graphs(str(path))
        for number, graph in enumerate(graphs):
            ends = torch.stack(graph.edges())
            if graph.num_edges() and not 0 <= int(ends.min()) <= int(ends.max()) < graph.num_nodes():
                raise DataError(
                    f"it is damaged: an edge of graph {number} ends outside of it; write it again"
                )
        return graphs, tensors
    except (
        dgl.DGLError,
        RuntimeError,
        ValueError,
        LookupError,
        TypeError,
        OverflowError,
        MemoryError,
    ) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[-1][:200] if lines else type(error).__name__
        raise DataError(f"it cannot be read ({reason}); write it again") from None


def try_apart(read: Callable[[], object], room: int) -> None:
    """Read in a copy of this process first: DGL believes what a file says of its sizes, and a damaged one can end it.

    The copy has bounds on memory and time; a DataError of its own is raised here too. Where there are no such copies,
    nothing is tried.
    """
    if not hasattr(os, "fork"):
        return
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # DGL's last words
            bound_process(room)
            read()
        except BaseException as error:
            os.write(tell, str(error).encode()[:4000] or b"it cannot be read")
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        sentence = pipe.read().decode(errors="replace")
    died = os.waitpid(child, 0)[1] != 0
    if died or sentence:
        raise DataError(sentence or "it is damaged: DGL breaks down over it; write it again")


def bound_process(room: int) -> None:
    import resource  # here, as other systems than Unix have none

    used = resource.getrusage(resource.RUSAGE_SELF)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bounds = {
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + LONGEST,
        resource.RLIMIT_AS: pages * resource.getpagesize() + room,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in bounds.items():
        resource.setrlimit(kind, (most, most))


def is_dgl_file(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _classes(path: Path, tensors: dict[str, torch.Tensor], target: object, need: bool) -> torch.Tensor | None:
    there = ", ".join(tensors) or "none"
    if target is not None and not isinstance(target, str):
        raise ConfigError(f"dataset.target must be the name of one tensor, got {target}")
    if target is None and len(tensors) == 1:
        return next(iter(tensors.values()))
    if target in tensors:
        return tensors[target]
    if not need:
        return None
    if target is None and tensors:
        raise ConfigError(
            f"{path} has several tensors ({there}): say which are the classes, dataset.target=NAME"
        )
    raise DataError(
        f"{path} has no classes{f' {target!r}, only {there}' if target else ''}; "
        "dgl.save_graphs(path, graphs, {'label': tensor}) keeps them"
    )
