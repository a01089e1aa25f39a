"""Raw graphs from any input, for prediction, where classes may be unknown."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from egin_dgl.data.arrays import GraphArrays, ReadChunk
from egin_dgl.data.prepare import GraphOptions
from egin_dgl.data.readers.columns import select_columns
from egin_dgl.data.readers.csv_graphs import has_tables, read_csv_graphs
from egin_dgl.data.readers.dgl_file import is_dgl_file, read_dgl_file
from egin_dgl.data.readers.search_path import read_local
from egin_dgl.data.readers.smiles import stream_smiles
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.errors import DataError
from egin_dgl.files import regular_file


def open_graphs(
    path: str | Path, dataset_settings: Mapping | None = None, chunk_size: int = 1024
) -> Iterator[GraphArrays]:
    """The graphs of `open_chunks`, read."""
    return (read() for read in open_chunks(path, dataset_settings, chunk_size))


def open_chunks(
    path: str | Path, dataset_settings: Mapping | None = None, chunk_size: int = 1024
) -> Iterator[ReadChunk]:
    """Graphs from a directory of tables, a table of SMILES, a DGL file or a TU dataset, at most `chunk_size` at a time.

    The path must exist: nothing is searched for by name or downloaded. Columns are selected by the ``dataset`` settings of
    the run that predicts, if its training data had the same format.
    Only a table of SMILES is read chunk by chunk; a chunk is empty if none of its molecules could be read, see
    `GraphArrays.skipped`.
    """
    path = regular_file(Path(path).expanduser())
    loader = detect_loader(path)
    settings = dict(dataset_settings or {})
    if str(settings.get("_target_")).rpartition(".")[2] != loader:
        settings = {}  # column names of another format do not apply

    def given(*names: str) -> dict:
        return {name: settings[name] for name in names if name in settings}

    if loader == "load_smiles":
        yield from stream_smiles(path, chunk_size, **given("smiles", "target", "id", "features"))
        return
    selected = select_columns(**given("node_labels", "node_attributes", "edge_labels", "edge_attributes"))
    if loader == "load_csv":
        arrays = read_csv_graphs(path, columns=selected, need_labels=False, **given("target"))
    elif loader == "load_dgl_file":
        arrays = read_dgl_file(path, columns=selected, need_labels=False, **given("target"))
    else:
        name, root = _tu_name(path)
        if (raw := read_local(root, name, "local files")) is None:
            raise DataError(f"{path} has no files of a TU dataset called {name}")
        arrays = read_tu(raw, need_labels=False, **given("task"))
    yield from (partial(replace, chunk) for chunk in arrays.chunks(chunk_size))


def graph_options(dataset_settings: Mapping | None) -> GraphOptions:
    """The GraphOptions of a run with these ``dataset`` settings."""
    settings = dict(dataset_settings or {})
    if str(settings.get("_target_", "")).endswith("load_smiles"):
        settings["edges"] = "as_given"
    return GraphOptions(**{key: settings[key] for key in vars(GraphOptions()) if key in settings})


def detect_loader(path: Path) -> str:
    """The function of `egin_dgl.data` that loads this input."""
    if path.is_dir():
        if has_tables(path):
            return "load_csv"
        if _tu_files(path):
            return "load_tu"
        raise DataError(
            f"{path} has neither graphs.csv, nodes.csv and edges.csv nor the files of a TU dataset"
        )
    if path.is_file() and path.suffix != ".zip":
        return "load_dgl_file" if is_dgl_file(path) else "load_smiles"
    if not path.exists():
        raise DataError(f"{path}: no such file or directory")
    return "load_tu"


def _tu_files(directory: Path) -> list[str]:
    """Names of the TU datasets with files in a directory or in its raw/."""
    files = [file for place in (directory, directory / "raw") for file in place.glob("*_A.txt")]
    return [file.name.removesuffix("_A.txt") for file in files]


def _tu_name(path: Path) -> tuple[str, Path]:
    """Name of a TU dataset, and the directory that holds its directory or archive."""
    path = path.resolve()
    if path.is_dir() and path.name not in _tu_files(path):
        raise DataError(f"{path} must be named after its dataset; rename it to {_tu_files(path)[0]}")
    return path.name.removesuffix(".zip"), path.parent
