"""Raw graphs from any input, in chunks: for prediction, where the classes may be unknown and the graphs many."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from egin_dgl.data.arrays import GraphArrays
from egin_dgl.data.dataset import GraphOptions
from egin_dgl.data.readers.columns import ColumnSelection
from egin_dgl.data.readers.csv_graphs import TABLES, read_csv_graphs
from egin_dgl.data.readers.dgl_file import is_dgl_file, read_dgl_file
from egin_dgl.data.readers.download import DEFAULT_URL
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.data.readers.smiles import MoleculeColumns, stream_smiles
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.errors import DataError

KINDS = {"load_csv": "csv", "load_smiles": "smiles", "load_dgl_file": "dgl", "load_tu": "tu"}


def open_graphs(
    path: str | Path, dataset_settings: Mapping | None = None, at_once: int = 1024
) -> Iterator[GraphArrays]:
    """Graphs in chunks of at most `at_once`, from a folder of tables, a table of SMILES, DGL's file, or a TU dataset.

    What kind of input it is follows from the input. `dataset_settings` are those of the run that will predict, so that
    columns are found and read as in training, where that was of the same kind. A chunk may be empty, if nothing in it
    could be read: see its `skipped`.
    """
    settings = dict(dataset_settings or {})
    kind = kind_of_input(path)
    if KINDS.get(str(settings.get("_target_", "")).rpartition(".")[2]) != kind:
        settings = {}  # of another kind: its names of columns mean nothing here
    path = Path(path).expanduser()
    if kind == "smiles":
        known = {key: settings[key] for key in ("smiles", "target", "id", "features") if key in settings}
        yield from stream_smiles(path, MoleculeColumns(**known), at_once)
        return
    nodes, edges = (
        ColumnSelection.of(settings.get(f"{side}_labels"), settings.get(f"{side}_attributes"), side)
        for side in ("node", "edge")
    )
    if kind == "csv":
        arrays = read_csv_graphs(path, settings.get("target", "label"), None, nodes, edges, need_labels=False)
    elif kind == "dgl":
        arrays = read_dgl_file(path, settings.get("target"), nodes, edges, need_labels=False)
    else:
        name, root = _tu_name(path)
        raw = find_raw(name, root or settings.get("root"), settings.get("url", DEFAULT_URL))
        arrays = read_tu(raw, need_labels=False)
    yield from arrays.chunks(at_once)


def graph_options(dataset_settings: Mapping | None) -> GraphOptions:
    """How raw graphs became a dataset in the run that has these settings."""
    settings = dict(dataset_settings or {})
    if str(settings.get("_target_", "")).endswith("load_smiles"):
        settings["edges"] = "as_given"
    options = ("edges", "self_loops", "node_features", "use_edge_features")
    return GraphOptions(**{key: settings[key] for key in options if key in settings})


def kind_of_input(path: str | Path) -> str:
    """csv, smiles, dgl or tu."""
    place = Path(path).expanduser()
    if place.is_dir():
        if any((place / f"{table}.csv{end}").exists() for table in TABLES for end in ("", ".gz")):
            return "csv"
        if _tu_files(place):
            return "tu"
        raise DataError(
            f"{place} holds no graphs: neither graphs.csv, nodes.csv and edges.csv nor the files of a TU dataset"
        )
    if place.is_file():
        if place.suffix == ".zip":
            return "tu"
        return "dgl" if is_dgl_file(place) else "smiles"
    if len(place.parts) > 1 or place.suffix in (".csv", ".tsv", ".txt", ".smi", ".gz", ".bin", ".zip"):
        raise DataError(f"{place}: no such file or folder")
    return "tu"


def _tu_files(folder: Path) -> list[str]:
    """The names of the TU datasets whose files lie in a folder, or in raw/ below it."""
    return [
        file.name.removesuffix("_A.txt")
        for place in (folder, folder / "raw")
        for file in place.glob("*_A.txt")
    ]


def _tu_name(path: Path) -> tuple[str, Path | None]:
    """The name of a TU dataset, and the folder that it lies in where a path was given."""
    path = path if not path.exists() else path.resolve()
    if path.is_dir():
        if path.name not in _tu_files(path):
            raise DataError(
                f"{path} must have the name of its dataset, {_tu_files(path)[0]}; rename the folder"
            )
        return path.name, path.parent
    return (path.stem, path.parent) if path.is_file() else (str(path), None)
