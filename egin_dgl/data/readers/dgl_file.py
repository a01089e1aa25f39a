"""Graphs in a file of `dgl.save_graphs`, with their classes among the tensors saved with them."""

import faulthandler
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from egin_dgl.backend import import_dgl
from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.perturb import EdgeFeatures, Structure
from egin_dgl.data.prepare import GraphOptions, hash_files, prepare
from egin_dgl.data.readers.columns import Selections, select_columns
from egin_dgl.data.readers.graph_objects import graphs_to_arrays
from egin_dgl.data.readers.raw_files import GIB
from egin_dgl.data.readers.raw_targets import find_tensor
from egin_dgl.errors import DataError
from egin_dgl.files import regular_file
from egin_dgl.options import Name, Seed, TaskOption

if TYPE_CHECKING:
    from dgl import DGLGraph

# The first bytes of DGL's files. DGL would read sizes from any other file, and allocate memory for them.
MAGIC = bytes.fromhex("3fa1b446f04f2edd")
MAX_SECONDS = 300  # of CPU time to read a file


def load_dgl_file(
    path: str,
    target: str | None = None,
    node_labels: Sequence[str] | None = None,
    node_attributes: Sequence[str] | None = None,
    edge_labels: Sequence[str] | None = None,
    edge_attributes: Sequence[str] | None = None,
    edges: Literal["symmetric", "as_given"] = "as_given",
    self_loops: Literal["remove", "keep"] = "remove",
    node_features: Literal["degree", "constant"] = "degree",
    edge_features: EdgeFeatures = "keep",
    structure: Structure = "keep",
    shuffle_seed: Seed = 0,
    task: TaskOption = "auto",
    name: Name | None = None,
    cache: bool = True,
) -> GraphDataset:
    """Load graphs written by ``dgl.save_graphs(path, graphs, {"label": targets})``.

    Args:
        path: The file.
        target: Name of the tensor with the targets, (G,) or (G, T); default: the only tensor saved with the graphs.
        node_labels, node_attributes, edge_labels, edge_attributes: Fields to use, as in `GraphDataset.from_graphs`.
        edges, self_loops, node_features, edge_features, structure, shuffle_seed: See `GraphOptions`.
        task: What the targets stand for; see `GraphOptions`.
        name: Name of the dataset; default: that of the file.
        cache: Use the cache of prepared datasets.
    """
    options = GraphOptions(edges, self_loops, node_features, edge_features, structure, shuffle_seed, task)
    columns = select_columns(node_labels, node_attributes, edge_labels, edge_attributes)
    file = Path(path).expanduser()
    source = {
        "graphs": hash_files(file),
        "target": str(target),
        "columns": [(c.labels, c.attributes) for c in columns],
    }
    read = partial(read_dgl_file, file, target, columns)
    return prepare(read, name or file.stem, options, source, str(file), cache)


def read_dgl_file(
    path: Path, target: str | None = None, columns: Selections | None = None, need_labels: bool = True
) -> GraphArrays:
    """Read and validate all graphs of a file."""
    if not is_dgl_file(path):
        raise DataError(f"{path} is not a file of dgl.save_graphs")
    import_dgl()
    try:
        _run_in_fork(partial(_load, path), max_bytes=2 * GIB + 50 * path.stat().st_size)
        graphs, tensors = _load(path)
        return graphs_to_arrays(graphs, find_tensor(tensors, target, need_labels), columns)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def is_dgl_file(path: Path) -> bool:
    try:
        with open(regular_file(path), "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _load(path: Path) -> tuple[list["DGLGraph"], dict[str, torch.Tensor]]:
    dgl = import_dgl()
    # DGLError is a RuntimeError in some versions only.
    errors = (dgl.DGLError, RuntimeError, ValueError, LookupError, TypeError, OverflowError, MemoryError)
    try:
        graphs, tensors = dgl.load_graphs(str(path))
        for number, graph in enumerate(graphs):
            ends = torch.stack(graph.edges())
            if graph.num_edges() and not 0 <= int(ends.min()) <= int(ends.max()) < graph.num_nodes():
                raise DataError(f"it is damaged, an edge of graph {number} ends outside of it; save it again")
        return graphs, tensors
    except errors as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[-1][:200] if lines else type(error).__name__
        raise DataError(f"it cannot be read ({reason}); save it again") from None


def _run_in_fork(read: Callable[[], object], max_bytes: int) -> None:
    """Read in a forked process first: DGL trusts the sizes in a file, and a damaged one can crash the process.

    The fork has limits on memory and time. Its DataError is raised here too. Without `os.fork` nothing is tried.
    """
    if not hasattr(os, "fork"):
        return
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # DGL prints a stack trace
            _limit_resources(max_bytes)
            read()
        except BaseException as error:
            os.write(sender, str(error).encode()[:4000] or b"it cannot be read")
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        message = pipe.read().decode(errors="replace")
    if os.waitpid(child, 0)[1] != 0 or message:
        raise DataError(message or "it is damaged, DGL crashes on it; save it again")


def _limit_resources(max_bytes: int) -> None:
    import resource  # Unix only

    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_seconds = int(used.ru_utime + used.ru_stime) + MAX_SECONDS
    memory = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + max_bytes
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
