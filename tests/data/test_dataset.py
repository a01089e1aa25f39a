"""GraphDataset and the cache of prepared datasets."""

import multiprocessing
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import dgl

from egin_dgl.data import GraphDataset, load_tu
from egin_dgl.data.mmap_dataset import cache_file, read_cached, write_cached
from egin_dgl.data.prepare import from_arrays
from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.data.readers.tu import read_tu
from egin_dgl.data.targets import encoded_like
from egin_dgl.errors import ConfigError, DataError

ROOT = os.environ.get("EGIN_DATA_ROOT")

# the paper's Table 1: graphs, classes, node dimension, edge dimension, majority in per cent
PAPER = {
    "MUTAG": (188, 2, 7, 4, 66.5),
    "AIDS": (2000, 2, 42, 3, 80.0),
    "COX2_MD": (303, 2, 7, 6, 51.2),
    "Cuneiform": (267, 30, 10, 4, 3.4),
    "ER_MD": (446, 2, 10, 6, 59.4),
    "PTC_FM": (349, 2, 18, 4, 59.0),
    "PTC_FR": (351, 2, 19, 4, 65.5),
    "PTC_MM": (336, 2, 20, 4, 61.6),
    "PTC_MR": (344, 2, 18, 4, 55.8),
}
TENSORS = ("labels", "node_offsets", "edge_offsets", "src", "dst", "node_feats", "edge_feats")

# graph 1: the triangle 1 2 3 with a self-loop; graph 2: the one-way edge 4 → 5 and the isolated node 6
SMALL = {
    "A": "1, 2\n4, 5\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n1, 1\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n",
    "graph_labels": "7\n-3\n",
    "node_labels": "0\n4\n0\n4\n0\n0\n",
    "edge_labels": "1\n2\n1\n1\n1\n2\n2\n1\n",
    "edge_attributes": "0.5\n0.25\n0.5\n0.5\n0.5\n0.5\n0.5\n9\n",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def small(tmp_path):
    """Write the small dataset (with changes) and give its root."""

    def write(name="S", **changes):
        directory = tmp_path / "data" / name
        directory.mkdir(parents=True, exist_ok=True)
        for file in directory.iterdir():
            file.unlink()
        for suffix, text in (SMALL | changes).items():
            if text is not None:
                (directory / f"{name}_{suffix}.txt").write_text(text)
        return tmp_path / "data"

    return write


def equal(one: GraphDataset, other: GraphDataset) -> bool:
    same = all(getattr(one, k) == getattr(other, k) for k in ("info", "vocabulary", "notes", "ids"))
    return (
        same
        and one.digest == other.digest
        and all(torch.equal(getattr(one, k), getattr(other, k)) for k in TENSORS)
    )


def processed(tmp_path):
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())


# --- real data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAPER)
def test_dimensions_equal_those_of_the_paper(name):
    if name not in ("MUTAG", "Cuneiform") and not (ROOT and Path(ROOT, name).is_dir()):
        pytest.skip(f"EGIN_DATA_ROOT has no {name}")
    graphs, classes, node_dim, edge_dim, majority = PAPER[name]
    expect = {"graphs": graphs, "classes": classes, "node_dim": node_dim, "edge_dim": [edge_dim]}
    dataset = load_tu(name, url=None, expect=expect)
    assert round(100 * dataset.labels.bincount().max().item() / graphs, 1) == majority
    assert dataset.node_feats.shape == (dataset.node_offsets[-1], node_dim)
    assert dataset.edge_feats.shape == (dataset.edge_offsets[-1], edge_dim)
    assert dataset.notes == ()  # these files list both directions and no self-loop
    assert equal(load_tu(name, url=None), dataset)


@pytest.mark.parametrize("name", ["MUTAG", "Cuneiform"])
def test_bundled_copies_are_found(name, monkeypatch):
    monkeypatch.delenv("EGIN_DATA_ROOT", raising=False)
    dataset = load_tu(name, url=None)
    assert (len(dataset), dataset.info.classes) == PAPER[name][:2] and "grakel" in dataset.origin


# --- contents ------------------------------------------------------------------------------------------


def test_flat_tensors_of_a_small_set(small):
    dataset = load_tu("S", small(), url=None)
    assert dataset.info.class_names == ("-3", "7") and dataset.labels.tolist() == [1, 0]
    assert dataset.node_offsets.tolist() == [0, 3, 6] and dataset.edge_offsets.tolist() == [0, 6, 8]
    assert dataset.src.tolist() == [0, 1, 1, 2, 0, 2, 3, 4]
    assert dataset.dst.tolist() == [1, 0, 2, 1, 2, 0, 4, 3]
    assert (
        dataset.info.edge_names == ("attribute0", "label0=1", "label0=2")
        and dataset.info.edge_attributes == 1
    )
    assert dataset.edge_feats[6:].tolist() == [[0.25, 0, 1], [0.25, 0, 1]]
    both = "6 edge(s) are listed in both directions"
    assert dataset.notes == ("1 self-loop(s) removed", f"reverse edge added to 1 one-way edge(s); {both}")


def test_items_are_dgl_graphs_with_local_nodes(small):
    dataset = load_tu("S", small(), url=None)
    graph, label = dataset[1]
    assert (graph.num_nodes(), graph.num_edges(), label.item()) == (3, 2, 0)
    assert label.dtype == torch.int64 and label.dim() == 0
    assert [ends.tolist() for ends in graph.edges()] == [[0, 1], [1, 0]]
    assert torch.equal(graph.ndata["feat"], dataset.node_feats[3:6])
    assert torch.equal(graph.edata["feat"], dataset.edge_feats[6:8])
    assert torch.equal(dataset[-2][0].ndata["feat"], dataset[torch.tensor(0)][0].ndata["feat"])
    for index in (2, -3):
        with pytest.raises(IndexError, match="of 2"):
            dataset[index]
    assert len(list(dataset)) == 2  # iteration ends where the graphs do


def test_dgl_loader_and_pickle(small):
    dataset = pickle.loads(pickle.dumps(load_tu("S", small(), url=None)))
    graph, labels = next(iter(dgl.dataloading.GraphDataLoader(dataset, batch_size=2)))
    assert graph.batch_size == 2 and labels.tolist() == [1, 0]
    assert torch.equal(graph.edges()[0], dataset.src) and torch.equal(graph.ndata["feat"], dataset.node_feats)
    assert equal(dataset.to("cpu"), dataset)


def test_with_features(small):
    dataset = load_tu("S", small(), url=None)
    doubled = dataset.with_features(dataset.node_feats * 2)
    assert (
        torch.equal(doubled.node_feats, dataset.node_feats * 2) and doubled.edge_feats is dataset.edge_feats
    )
    wider = dataset.with_features(torch.ones(6, 3), node_names=("a", "b", "c"))
    assert wider.info.node_dim == 3 and wider.info.edge_dim == dataset.info.edge_dim
    for wrong in (torch.ones(5, 2), torch.ones(6, 3)):
        with pytest.raises(ValueError, match="features must be"):
            dataset.with_features(wrong)


# --- options -------------------------------------------------------------------------------------------------------


def test_options_change_edges_and_features(small):
    root = small(node_labels=None)
    assert load_tu("S", root, edges="as_given").edge_offsets.tolist() == [0, 6, 7]
    assert load_tu("S", root, self_loops="keep").edge_offsets.tolist() == [0, 7, 9]
    assert load_tu("S", root).info.node_names == ("degree=0", "degree=1", "degree=2")
    assert load_tu("S", root, node_features="constant").info.node_dim == 1
    plain = load_tu("S", root, edge_features="constant", expect={"edge_dim": 99})
    assert (
        plain.info.edge_dim == 1
        and plain.info.edge_attributes == 0
        and plain.edge_feats.unique().tolist() == [1]
    )


@pytest.mark.parametrize(
    ("option", "valid"),
    [
        ({"edges": "both"}, "edges must be 'symmetric' or 'as_given', got 'both'"),
        ({"self_loops": True}, "self_loops must be 'remove' or 'keep', got True"),
        ({"node_features": "random"}, "node_features must be 'degree' or 'constant', got 'random'"),
        (
            {"expect": {"nodes": 3}},
            "there is no option 'expect.nodes'; valid: classes, edge_dim, graphs, node_dim",
        ),
    ],
)
def test_invalid_options_are_errors_before_any_search(option, valid):
    with pytest.raises(ConfigError, match=valid):
        load_tu("NOSUCH", url="http://127.0.0.1:9", **option)


@pytest.mark.parametrize(
    ("key", "value"), [("graphs", 3), ("classes", [3, 4]), ("node_dim", 7), ("edge_dim", [1])]
)
def test_unexpected_sizes_are_errors(small, key, value):
    root = small()
    for _ in range(2):  # read anew, then from the cache
        with pytest.raises(
            DataError, match=f"expected {key} .*, found {3 if key == 'edge_dim' else 2} in .*data/S"
        ):
            load_tu("S", root, expect={key: value})
    assert len(load_tu("S", root, expect={key: [2, 3], "graphs": None})) == 2


def test_single_class_is_an_error_and_is_not_cached(small, tmp_path):
    with pytest.raises(DataError, match=r"data/S \(local files\) has a single class"):
        load_tu("S", small(graph_labels="5\n5\n"))
    assert processed(tmp_path) == []


def test_new_graphs_are_encoded_as_the_training_set(small):
    trained = load_tu("S", small())
    reuse = {"vocabulary": trained.vocabulary, "targets": encoded_like(trained.info)}

    def encode(**changes):
        return from_arrays(read_tu(find_raw("S", small(**changes)), need_labels=False), "S", **reuse)

    assert torch.equal(encode().node_feats, trained.node_feats)
    new = encode(node_labels="0\n99\n0\n0\n0\n0\n", graph_labels="7\n1234\n")
    assert new.info.node_names == trained.info.node_names and new.info.class_names == trained.info.class_names
    assert new.node_feats[:3].tolist() == [[1, 0], [0, 0], [1, 0]]
    assert (
        new.labels.tolist() == [1, -1] and "1 node label(s) not in the vocabulary: label0=99 (1)" in new.notes
    )
    unlabelled = encode(graph_labels=None)
    assert unlabelled.labels.tolist() == [-1, -1] and unlabelled.info.classes == 2


# --- the processed cache -------------------------------------------------------------------------------------------


def test_second_load_is_from_the_cache_and_equal(small, tmp_path):
    root = small()
    first = load_tu("S", root)
    (path,) = processed(tmp_path)
    before = path.stat().st_mtime_ns
    assert equal(load_tu("S", root), first)
    assert processed(tmp_path) == [path] and path.stat().st_mtime_ns == before
    assert equal(load_tu("S", root, cache=False), first)


def test_cache_is_read_and_not_the_files(small):
    """A cache file stored for one dataset under another's key would be noticed: the tensors really come from it."""
    first = load_tu("S", small())
    write_cached(replace(first, labels=first.labels + 5))
    assert load_tu("S", small()).labels.tolist() == [6, 5]


@pytest.mark.parametrize("disk", ["free", "full"])
def test_large_features_are_computed_in_a_mapped_file(small, tmp_path, monkeypatch, caplog, disk):
    first = load_tu("S", small(), cache=False)
    for module in ("mmap_dataset", "prepare"):
        monkeypatch.setattr(f"egin_dgl.data.{module}.LARGE", 1)
    made = []
    monkeypatch.setattr(
        np, "memmap", lambda *args, memmap=np.memmap, **kw: made.append(0) or memmap(*args, **kw)
    )
    if disk == "full":
        monkeypatch.setattr(
            os, "posix_fallocate", lambda *size: (_ for _ in ()).throw(OSError(28, "No space left"))
        )
    assert equal(load_tu("S", small()), first) and len(made) == (2 if disk == "free" else 0)
    assert ("are computed in memory: " in caplog.text) == (disk == "full")
    assert len(list((tmp_path / "cache" / "processed").iterdir())) == 1


def test_other_content_or_options_have_another_cache_file(small, tmp_path):
    first = load_tu("S", small())
    changed = load_tu("S", small(node_labels="4\n4\n0\n4\n0\n0\n"))
    given = load_tu("S", small(), edges="as_given")
    assert len({first.digest, changed.digest, given.digest}) == 3 and len(processed(tmp_path)) == 3
    assert not torch.equal(first.node_feats, changed.node_feats)


def test_no_cache_writes_nothing(small, tmp_path):
    load_tu("S", small(), cache=False)
    assert processed(tmp_path) == []


@pytest.mark.parametrize("damage", ["empty", "half", "noise", "flipped byte", "other header"])
def test_damaged_cache_file_is_rebuilt(small, tmp_path, damage):
    root = small()
    first = load_tu("S", root)
    (path,) = processed(tmp_path)
    good = path.read_bytes()
    bad = {
        "empty": b"",
        "half": good[: len(good) // 2],
        "noise": os.urandom(len(good)),
        "flipped byte": good[:-1] + bytes([good[-1] ^ 1]),
        "other header": good.replace(b"crc32", b"crc33"),
    }[damage]
    path.write_bytes(bad)
    with path.open("rb") as reader:
        assert equal(load_tu("S", root), first)
        assert reader.read() == bad  # replaced, not overwritten
    assert path.read_bytes() == good


def test_flipped_bytes_and_other_keys_are_detected(small, caplog):
    first = load_tu("S", small())
    identity = (first.digest, first.info.name, first.origin)
    path = cache_file(*identity[:2])
    good = path.read_bytes()
    for place in range(0, len(good), 13):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        found = read_cached(*identity)
        assert found is None or equal(found, first), place  # padding of the header is ignored
    assert "is damaged" in caplog.text
    other = cache_file("another digest", "S")
    other.write_bytes(good)
    assert read_cached("another digest", "S", "") is None


def test_unwritable_cache_is_a_warning(small, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "file"))
    assert len(load_tu("S", small())) == 2
    assert "cannot write" in caplog.text


def test_two_processes_write_one_cache_file(small, tmp_path):
    """Both start at the same time; both get the data, and one complete file remains."""
    root = small(A=SMALL["A"] + "1, 2\n" * 20_000, edge_labels="1\n" * 20_008, edge_attributes=None)
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(2)

    def load():
        barrier.wait()
        assert load_tu("S", root).edge_feats.sum().item() == 20_008

    processes = [fork.Process(target=load) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len(processed(tmp_path)) == 1
    assert equal(load_tu("S", root), load_tu("S", root, cache=False))


def test_training_statistics():
    whole = load_tu("MUTAG")
    graphs = [3, 50, 120, 7, 99]
    info = whole.with_training_statistics(graphs).info
    sizes = sorted(whole[graph][0].num_nodes() for graph in graphs)
    assert info.size_percentiles[0] == sizes[0] and info.size_percentiles[100] == sizes[-1]
    assert info.size_percentiles[40] == sizes[2]  # which 3 of 5, that is 60 %, reach
    degrees = torch.cat([whole[graph][0].in_degrees() for graph in graphs]).double()
    assert info.mean_log_degree == pytest.approx((degrees + 1).log().mean().item())
    assert whole.info.size_percentiles[100] == int(whole.node_offsets.diff().max())
    assert replace(info, size_percentiles=whole.info.size_percentiles, mean_log_degree=0.0) == replace(
        whole.info, mean_log_degree=0.0
    )


def test_ids_of_graphs(small):
    root = small(graph_labels="7\n1\n-3\n", graph_indicator="1\n1\n1\n3\n3\n3\n")
    first, cached = load_tu("S", root), load_tu("S", root)
    assert first.ids == cached.ids == ("1", "3")  # graph 2 has no node
    assert first.to("cpu").with_features().with_training_statistics([0]).ids == ("1", "3")
