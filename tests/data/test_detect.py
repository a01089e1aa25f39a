"""Detection of the input format, and DGL files."""

import os
import shutil
import zipfile

import numpy as np
import pytest
import torch
from graphs import dgl
from running import ROOT

from egin_dgl.data import GraphDataset, load_tu
from egin_dgl.data.prepare import from_arrays
from egin_dgl.data.readers.csv_graphs import load_csv
from egin_dgl.data.readers.detect import open_graphs
from egin_dgl.data.readers.dgl_file import load_dgl_file
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.data.readers.smiles import load_smiles
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.errors import DataError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def mutag():
    return read_tu(find_raw("MUTAG", url=None))


@pytest.fixture(scope="module")
def mutag_files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tu") / "MUTAG"
    directory.mkdir()
    raw = find_raw("MUTAG", url=None)
    for suffix, content in raw.contents.items():
        (directory / f"MUTAG_{suffix}.txt").write_bytes(content)
    return directory


def rings(count=10):
    """Rings of 3, 4, … nodes with a label and an attribute, their edges in both directions."""
    graphs = []
    for n in range(3, 3 + count):
        ring = torch.arange(n)
        graph = dgl.to_bidirected(dgl.graph((ring, (ring + 1) % n)))
        graph.ndata["kind"] = ring % 2
        graph.edata["length"] = torch.rand(2 * n, generator=torch.Generator().manual_seed(n))
        graphs.append(graph)
    return graphs


@pytest.fixture
def saved(tmp_path):
    def write(tensors=None, graphs=None):
        path = tmp_path / "rings.bin"
        dgl.save_graphs(str(path), rings() if graphs is None else graphs, tensors)
        return path

    return write


def test_tu_by_directory_and_zip(mutag, mutag_files, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "MUTAG"), "zip", mutag_files.parent)
    for path in (mutag_files, archive, f"{mutag_files}/"):
        (arrays,) = open_graphs(path, {"_target_": "egin_dgl.data.load_tu", "url": None})
        assert arrays.graphs == 188 and arrays.ids[-1] == "188"
        assert np.array_equal(arrays.targets, mutag.targets)


def test_dgl_files(saved):
    classes = torch.arange(10) % 2
    path = saved({"label": classes})
    data = load_dgl_file(path)
    assert data.info.name == "rings" and data.labels.tolist() == classes.tolist()
    assert data.info.node_names == ("kind=0", "kind=1") and data.info.edge_names == ("length",)
    same_graphs = GraphDataset.from_graphs(rings(), classes)
    assert torch.equal(data.edge_feats, same_graphs.edge_feats) and torch.equal(data.src, same_graphs.src)
    (arrays,) = open_graphs(path)
    assert arrays.graphs == 10 and arrays.targets[:, 0].tolist() == classes.tolist()
    (unlabelled,) = open_graphs(saved(None))
    assert unlabelled.targets is None


def test_errors_of_dgl_files(saved, tmp_path):
    classes = torch.arange(10) % 2
    with pytest.raises(
        DataError, match="no single tensor of targets, only a, b; select it with dataset.target=NAME"
    ):
        load_dgl_file(saved({"a": classes, "b": classes}))
    assert load_dgl_file(saved({"a": classes, "b": 1 - classes}), target="b").labels[0] == 1
    with pytest.raises(
        DataError, match="no single tensor of targets, only none; .* or save it with dgl.save_graphs"
    ):
        load_dgl_file(saved(None))
    with pytest.raises(DataError, match="has no tensor 'y', only a, b"):
        load_dgl_file(saved({"a": classes, "b": classes}), target="y")
    several = load_dgl_file(saved({"y": torch.tensor([[0, 1], [1, 0]] * 5)}))
    assert several.info.task == "multilabel" and several.labels[:2].tolist() == [[0, 1], [1, 0]]
    real = load_dgl_file(saved({"y": torch.tensor([0.5, torch.nan] * 5)}))
    assert real.info.task == "regression" and real.labels.tolist() == [[0.5]] * 5
    with pytest.raises(DataError, match="rings.bin: there are 10 graphs and 9 labels"):
        load_dgl_file(saved({"y": classes[:9]}))
    (tmp_path / "other.bin").write_bytes(b"\x80\x04 something else")
    with pytest.raises(DataError, match="other.bin is not a file of dgl.save_graphs"):
        load_dgl_file(tmp_path / "other.bin")
    with pytest.raises(DataError, match="cannot read .*none.bin: No such file"):
        load_dgl_file(tmp_path / "none.bin")


def test_truncated_dgl_file(saved, tmp_path):
    whole = saved({"y": torch.arange(10) % 2}).read_bytes()
    (tmp_path / "half.bin").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="half.bin: it (cannot be read|is damaged)"):
        load_dgl_file(tmp_path / "half.bin")


def test_paths_without_graphs_are_errors(tmp_path, mutag_files):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    shutil.copy(mutag_files / "MUTAG_A.txt", tmp_path / "other")
    for path, message in (
        (tmp_path / "empty", "has neither graphs.csv"),
        (tmp_path / "new.csv", "no such file or directory"),
        ("new.csv", "no such file or directory"),
        (tmp_path / "other", "must be named after its dataset; rename it to MUTAG"),
    ):
        with pytest.raises(DataError, match=message):
            list(open_graphs(path))


def test_vocabulary_of_other_data_is_an_error(mutag, saved):
    trained = load_dgl_file(saved({"y": torch.arange(10) % 2})).vocabulary
    with pytest.raises(DataError, match="the vocabulary has 1 attribute and 0 label column"):
        from_arrays(mutag, "MUTAG", vocabulary=trained)


def test_chunks_join_to_the_whole():
    path = ROOT / "examples" / "tables"
    (whole,) = open_graphs(path)
    chunks = list(open_graphs(path, chunk_size=50))
    assert [chunk.graphs for chunk in chunks] == [50, 50, 20]
    assert sum((chunk.ids for chunk in chunks), ()) == whole.ids
    graphs, nodes = (
        np.cumsum([0, *sizes]) for sizes in zip(*((c.graphs, len(c.node_graph)) for c in chunks), strict=True)
    )
    assert np.array_equal(np.concatenate([c.nodes.labels for c in chunks]), whole.nodes.labels)
    joined = np.concatenate([chunk.node_graph + graphs[i] for i, chunk in enumerate(chunks)])
    assert np.array_equal(joined, whole.node_graph)
    order = np.argsort(whole.node_graph[whole.src], kind="stable")
    for end in ("src", "dst"):
        joined = np.concatenate([getattr(chunk, end) + nodes[i] for i, chunk in enumerate(chunks)])
        assert np.array_equal(joined, getattr(whole, end)[order])
    assert np.array_equal(np.concatenate([c.edges.labels for c in chunks]), whole.edges.labels[order])


@pytest.mark.parametrize("read", ["csv", "smiles", "dgl", "tu", "tu zip", "predict"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_special_files_are_refused(tmp_path, read, kind):
    names = {"csv": "graphs.csv", "tu": "X/X_A.txt", "tu zip": "X.zip"}
    path = tmp_path / names.get(read, "input.csv")
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for other in ("nodes.csv", "edges.csv"):
        (tmp_path / other).write_text("graph\n")
    readers = {
        "csv": lambda: load_csv(str(tmp_path)),
        "smiles": lambda: load_smiles(str(path)),
        "dgl": lambda: load_dgl_file(str(path)),
        "predict": lambda: list(open_graphs(path)),
    }
    with pytest.raises(DataError, match="is a device, a pipe or a socket; give a file or a directory"):
        readers.get(read, lambda: load_tu("X", tmp_path, url=None))()


def test_a_name_is_never_looked_up_or_downloaded(monkeypatch, tmp_path):
    def connect(*_):
        raise AssertionError("a connection was made")

    monkeypatch.setattr("socket.socket.connect", connect)
    monkeypatch.setattr("socket.getaddrinfo", connect)
    monkeypatch.chdir(tmp_path)
    settings = {"_target_": "egin_dgl.data.load_tu", "url": "http://127.0.0.1:9/{name}.zip"}
    for name in ("CCO", "MUTAG", "nowhere/MUTAG.zip"):
        with pytest.raises(DataError, match=f"^{name}: no such file or directory"):
            list(open_graphs(name, settings))
    with zipfile.ZipFile(tmp_path / "MUTAG.zip", "w") as file:
        file.writestr("other.txt", "")
    with pytest.raises(DataError, match="MUTAG"):
        list(open_graphs("MUTAG.zip", settings))
