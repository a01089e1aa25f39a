"""Raw targets of any source → the task they stand for, and labels."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from graphs import dgl

from egin_dgl.data import GraphDataset, load_csv
from egin_dgl.data.readers.dgl_file import load_dgl_file
from egin_dgl.data.readers.smiles import load_smiles
from egin_dgl.errors import DataError

MISSING = torch.nan
TOX21 = [
    *("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD"),
    *("NR-PPAR-gamma", "SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53"),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tables(tmp_path):
    """A directory of graphs of one edge, with these columns of graphs.csv."""

    def write(**columns):
        rows = list(zip(*columns.values(), strict=True))
        lines = [f"g{i},{','.join(map(str, row))}\n" for i, row in enumerate(rows)]
        (tmp_path / "graphs.csv").write_text(f"id,{','.join(columns)}\n" + "".join(lines))
        nodes = [f"g{i},{node}\n" for i in range(len(rows)) for node in (0, 1)]
        (tmp_path / "nodes.csv").write_text("graph,node\n" + "".join(nodes))
        edges = [f"g{i},0,1\n" for i in range(len(rows))]
        (tmp_path / "edges.csv").write_text("graph,source,target\n" + "".join(edges))
        return tmp_path

    return write


DECIDED = {
    "text": ({"a": ["yes", "no", ""]}, "multiclass", [1, 0]),
    "few integers": ({"a": [3, 1, 2]}, "multiclass", [2, 0, 1]),
    "booleans of one column": ({"a": ["True", "False"]}, "multiclass", [1, 0]),
    "real numbers": ({"a": [0.5, 2, "nan"]}, "regression", [[0.5], [2.0]]),
    "columns of 0 and 1": ({"a": [0, 1, ""], "b": [1, "", 1]}, "multilabel", [[0, 1], [1, MISSING], [MISSING, 1]]),
    "written by pandas": ({"a": ["0.0", "1.0"], "b": ["", "1.0"]}, "multilabel", [[0, MISSING], [1, 1]]),
    "columns of booleans": ({"a": ["True", "False"], "b": ["", "TRUE"]}, "multilabel", [[1, MISSING], [0, 1]]),
    "an empty column": ({"a": [0.5, 1.5], "b": ["", ""]}, "regression", [[0.5, MISSING], [1.5, MISSING]]),
    "columns of real numbers": ({"a": [0.5, "NA"], "b": ["", 2.5e-3]}, "regression", [[0.5, MISSING], [MISSING, 2.5e-3]]),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "task", "labels"), DECIDED.values(), ids=DECIDED.keys())
def test_the_values_decide_the_task(tables, columns, task, labels):
    target = list(columns) if len(columns) > 1 else "a"
    data = load_csv(tables(**columns), target=target)
    assert data.info.task == task
    torch.testing.assert_close(data.labels, torch.tensor(labels, dtype=data.labels.dtype), equal_nan=True)


def test_graphs_without_any_label_are_left_out_and_listed(tables):
    data = load_csv(tables(a=[0, "", 1], b=["", "", 0]), target=["a", "b"])
    assert data.ids == ("g0", "g2") and data.notes == ("1 graph(s) without a label left out: line 3",)


MANY = list(range(21))
REFUSED = {
    "many integers": ({"a": MANY}, "auto", "holds 21 different integers: task=multiclass takes each as a class, task=regression as a"),
    "text among numbers": ({"a": [0.5, ">10"]}, "auto", "line 3: the target 'a' holds '>10' among numbers: .*task=regression; task=multi"),
    "text among integers": ({"a": [*MANY, "inf"]}, "auto", "line 23: the target 'a' holds 'inf' among numbers"),
    "too many classes": ({"a": MANY}, "multiclass", "21 different values in 21 graphs, too many for classes: use task=regression"),
    "0/1 and real": ({"a": [0, 1], "b": [0.5, 2]}, "auto", "hold 'a' 0 and 1, 'b' real numbers: task=regression takes all as numbers"),
    "several of text": ({"a": ["x", "y"], "b": [0, 1]}, "auto", "'a' text, 'b' 0 and 1: task=multilabel is .* task=regression .* task=multiclass"),
    "classes of two": ({"a": [0, 1], "b": [0, 1]}, "multiclass", "for one target, here are 2: use task=multilabel .*task=regression"),
    "no 0 or 1": ({"a": [0, 2]}, "multilabel", "line 3: the target 'a' holds 2, where task=multilabel needs 0 or 1"),
    "no number": ({"a": [0.5, "x"]}, "regression", "line 3: the target 'a' holds 'x', where task=regression needs a number"),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "task", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_target_that_could_be_several_names_the_tasks(tables, columns, task, message):
    place = tables(**columns)
    with pytest.raises(DataError, match=message) as caught:
        load_csv(place, target=list(columns) if len(columns) > 1 else "a", task=task)
    assert str(place) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("values", "task"), [([[0.5], [MISSING], [2.0]], "regression"), ([0.5, MISSING, 2.0], "regression"),
                                              ([[0.0, 1.0], [MISSING, 1.0], [MISSING] * 2], "multilabel"),
                                              ([[0.25, 1.0], [MISSING, 1.5], [3.0, 1.0]], "regression")])  # fmt: skip
def test_tensors_of_dgl_files(tmp_path, values, task):
    graphs = [dgl.graph(([0, 1], [1, 0])) for _ in values]
    dgl.save_graphs(str(tmp_path / "g.bin"), graphs, {"y": torch.tensor(values)})
    data = load_dgl_file(str(tmp_path / "g.bin"))
    expected = torch.tensor(values).double().reshape(len(values), -1)
    torch.testing.assert_close(data.labels, expected[~expected.isnan().all(dim=1)], equal_nan=True)
    assert data.info.task == task and len(data.info.target_names) == expected.shape[1]


def test_y_of_pyg_has_one_row_or_none():
    Data = pytest.importorskip("torch_geometric.data", reason="PyG is not installed").Data
    edges, rows = torch.tensor([[0, 1], [1, 0]]), [[0.5, MISSING], [1.0, 2.5], [3.0, 0.0]]
    flat, nested = (
        GraphDataset.from_graphs(
            [Data(edge_index=edges, num_nodes=2, y=torch.tensor(row).reshape(shape)) for row in rows]
        )
        for shape in ((2,), (1, 2))
    )
    assert flat.info.task == "regression" and flat.info.target_names == ("label0", "label1")
    torch.testing.assert_close(flat.labels, torch.tensor(rows).double(), equal_nan=True)
    torch.testing.assert_close(nested.labels, flat.labels, equal_nan=True)


def test_labels_of_networkx_graphs():
    graphs = [nx.path_graph(3)] * 3
    booleans = GraphDataset.from_graphs(graphs, np.array([[True, False], [False, False], [True, True]]))
    assert booleans.info.task == "multilabel" and booleans.labels.tolist() == [[1, 0], [0, 0], [1, 1]]
    pairs = GraphDataset.from_graphs(
        [(graph, value) for graph, value in zip(graphs, (0.5, None, 1.5), strict=True)]
    )
    assert pairs.labels.tolist() == [[0.5], [1.5]]
    with pytest.raises(DataError, match=r"graph 2 has 1 target\(s\), another graph has 2"):
        GraphDataset.from_graphs(graphs, [[0.5, 1], [1, 0.5], [1]])


def test_real_tables(molecules, tmp_path):
    esol, bace = molecules("esol"), molecules("bace")
    data = load_smiles(esol, target="log_solubility")
    assert (len(data), data.info.task) == (1128, "regression")
    assert data.labels[:2, 0].tolist() == [-0.77, -3.3]
    assert load_smiles(bace, target="inhibitor").info.class_names == ("0", "1")
    assert load_smiles(bace, target="pIC50").info.task == "regression"
    with pytest.raises(
        DataError, match="'inhibitor' 0 and 1, 'pIC50' real numbers: task=regression takes all"
    ):
        load_smiles(bace, target=["inhibitor", "pIC50"])
    both = load_smiles(bace, target=["inhibitor", "pIC50"], task="regression")
    np.testing.assert_array_equal(both.labels, pd.read_csv(bace)[["inhibitor", "pIC50"]].to_numpy())


def test_twelve_targets_with_missing_labels_and_invalid_molecules(molecules, tmp_path):
    table = pd.read_csv(molecules("tox21"))
    refused = pd.DataFrame({"id": ["odd"], "smiles": ["C1CC"], "NR-AR": [1.0]})
    pd.concat([table[:300], refused, table[300:500]]).to_csv(tmp_path / "part.csv", index=False)
    data = load_smiles(tmp_path / "part.csv", target=TOX21, on_invalid="skip")
    assert data.info.task == "multilabel" and data.info.target_names == tuple(TOX21)
    kept = table[:500].set_index("id").loc[list(data.ids), TOX21].to_numpy(dtype=float)
    np.testing.assert_array_equal(data.labels.numpy(), kept)
    assert np.isnan(kept).any() and not np.isnan(kept).all(axis=1).any()
    assert any("line 302: molecule 'odd'" in note for note in data.notes)
