"""Molecules become the graphs that chemists draw; one that cannot be read is named, with its line."""

import gzip
import subprocess
import sys

import pytest
import torch

from egin_dgl.data.dataset import from_arrays
from egin_dgl.data.readers.detect import graph_options, open_graphs
from egin_dgl.data.readers.molecules import read_molecule, scaffold_groups
from egin_dgl.data.readers.smiles import load_smiles
from egin_dgl.errors import ConfigError, DataError

pytest.importorskip("rdkit", reason="molecules are read with RDKit, the extra `chem`")

TABLE = "id,smiles,activity\nethanol,CCO,no\nphenol,Oc1ccccc1,yes\nacetone,CC(C)=O,yes\namine,CCN,no\n"
SETTINGS = {
    "_target_": "egin_dgl.data.readers.smiles.load_smiles",
    "smiles": "smiles",
    "target": "activity",
    "id": None,
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path):
    def write(text=TABLE, name="molecules.csv"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / name

    return write


def bonds_of(graph):
    return sorted(
        zip(graph.src.tolist(), graph.dst.tolist(), graph.edge_columns.get("bond", []), strict=True)
    )


@pytest.mark.parametrize(
    ("smiles", "atoms", "bonds"),
    [
        ("CC=O", "C C O", [(0, 1, "single"), (1, 2, "double")]),
        ("C#N", "C N", [(0, 1, "triple")]),
        ("[Na+].[Cl-]", "Na Cl", []),
        ("[H]C([H])([H])Br", "C Br", [(0, 1, "single")]),  # no explicit hydrogens
        ("C1=CC1", "C C C", [(0, 1, "double"), (0, 2, "single"), (1, 2, "single")]),
        ("c1ccsc1", "C C C S C", [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]),
    ],
)
def test_molecules_as_in_tu(smiles, atoms, bonds):
    graph = read_molecule(smiles)
    bonds = [(*bond, "aromatic") if len(bond) == 2 else bond for bond in bonds]
    assert graph.node_columns == {"atom": atoms.split()}
    assert bonds_of(graph) == sorted([*bonds, *((v, u, kind) for u, v, kind in bonds)])


def test_rich_features():
    graph = read_molecule("C[N+](C)(C)C[C@H](F)/C=C/c1ccccc1", "rich")
    atoms = {name: values[1] for name, values in graph.node_columns.items()}
    assert (
        atoms["atom"] == "N" and atoms["charge"] == 1 and atoms["hydrogens"] == 0 and atoms["neighbors"] == 4
    )
    assert graph.node_columns["chirality"][5].startswith("tetrahedral")
    assert graph.node_columns["aromatic"][-1] is True and graph.node_columns["ring"][:9] == [False] * 9
    kinds = set(zip(graph.edge_columns["bond"], graph.edge_columns["stereo"], strict=True))
    assert ("double", "e") in kinds and ("aromatic", "none") in kinds
    assert set(graph.edge_columns) == {"bond", "conjugated", "ring", "stereo"}


@pytest.mark.parametrize("bad", ["C1CC", "C(C)(C)(C)(C)C", "xyz", "", "CCO ethanol", "[Xx]", "C\x00", "é"])
def test_what_is_no_molecule(bad):
    with pytest.raises(DataError) as caught:
        read_molecule(bad)
    assert "\n" not in str(caught.value)


def test_a_table_of_molecules(table):
    data, again = (load_smiles(table(), target="activity") for _ in range(2))
    assert data.info.name == "molecules" and data.ids == ("ethanol", "phenol", "acetone", "amine")
    assert data.info.node_names == ("atom=C", "atom=N", "atom=O")
    assert data.info.edge_names == ("bond=aromatic", "bond=double", "bond=single")
    assert data.info.class_names == ("no", "yes") and data.labels.tolist() == [0, 1, 1, 0]
    assert data.smiles == again.smiles == ("CCO", "Oc1ccccc1", "CC(C)=O", "CCN") and not data.notes
    assert torch.equal(data.edge_feats, again.edge_feats)


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: gzip.compress(text.encode()),
    ],
    ids=["semicolons", "tabs", "gzip"],
)
def test_dialects(table, rewrite):
    plain, other = load_smiles(table(), target="activity"), table(rewrite(TABLE), "other.csv")
    assert torch.equal(load_smiles(other, target="activity").edge_feats, plain.edge_feats)


def test_an_unreadable_molecule_is_refused_or_left_out(table):
    path = table(TABLE + "odd,C1CC,yes\nlast,CCC,no\nworse,xx,no\n")
    with pytest.raises(
        DataError, match="line 6: molecule 'odd': 'C1CC' is not a molecule.*dataset.on_invalid=skip"
    ):
        load_smiles(path, target="activity")
    data = load_smiles(path, target="activity", on_invalid="skip")
    assert data.ids[-1] == "last" and len(data) == 5
    assert (
        "2 molecule(s) left out: " in data.notes[0]
        and "line 6: molecule 'odd'" in data.notes[0]
        and "line 8: molecule 'worse'" in data.notes[0]
    )


def test_names_are_lines_where_nothing_else_is_said(table):
    data = load_smiles(table("smiles,label\nCCO,a\n\nCCN,b\n"))
    assert data.ids == ("2", "4")
    assert load_smiles(table(), target="activity", id="smiles").ids[0] == "CCO"


BAD = {
    "no smiles": (
        {"smiles": "SMILES"},
        DataError,
        "has no column 'SMILES', only 'id', 'smiles', 'activity': say",
    ),
    "no label": ({"target": "label"}, DataError, "has no column 'label', only .*: say dataset.target=NAME"),
    "two labels": ({"target": ["activity", "id"]}, ConfigError, "single-label classification"),
    "features": ({"features": "all"}, ConfigError, "dataset.features must be tu or rich, got 'all'"),
    "on_invalid": ({"on_invalid": "ignore"}, ConfigError, "dataset.on_invalid must be skip or raise"),
    "no id": ({"id": "name"}, DataError, "has no column 'name'.*dataset.id"),
    "no part": ({"split_column": "fold"}, DataError, "has no column 'fold'.*dataset.split_column"),
}


@pytest.mark.parametrize(("options", "kind", "message"), BAD.values(), ids=BAD.keys())
def test_faults_of_options(table, options, kind, message):
    with pytest.raises(kind, match=message):
        load_smiles(table(), **{"target": "activity"} | options)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,CCO,1\nb,CC,\nc,C,0\nd,CCC,nan\n", "lines 3, 5: no class in 'activity'; take such rows out"),
        (
            "a,CCO,1.5\nb,CC,2\nc,C,0\n",
            "line 2: 'activity' holds 1.5, a measured number; each graph has one class",
        ),
        ("", "lists no molecule that can be read"),
    ],
)
def test_classes_that_cannot_be_learnt(table, rows, message):
    with pytest.raises(DataError, match=message):
        load_smiles(table("id,smiles,activity\n" + rows), target="activity")


def test_files_that_cannot_be_read(tmp_path):
    for path, message in ((tmp_path / "none.csv", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(DataError, match=f"cannot read .*: {message}"):
            load_smiles(path)


def test_rdkit_is_silent_and_its_absence_a_sentence(table, tmp_path):
    code = "from egin_dgl.data.readers.smiles import load_smiles\n"
    code += (
        f"load_smiles({str(table(TABLE + 'x,C1CC,no'))!r}, target='activity', on_invalid='skip', cache=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "SMILES Parse Error" not in done.stderr and "left out" in done.stderr
    (tmp_path / "without" / "rdkit").mkdir(parents=True)
    (tmp_path / "without" / "rdkit" / "__init__.py").write_text("raise ImportError('no RDKit here')")
    hidden = f"import sys; sys.path.insert(0, {str(tmp_path / 'without')!r})\n"
    done = subprocess.run([sys.executable, "-c", hidden + code], capture_output=True, text=True)
    assert (
        "ConfigError: molecules are read with RDKit (no RDKit here): pip install 'egin-dgl[chem]'"
        in done.stderr
    )


# --- prediction ----------------------------------------------------------------------------------------------------


def test_new_molecules_are_read_as_the_old(table):
    old = load_smiles(table(), target="activity")
    new = table("name;smiles;id\nx;CC[Se]C;1\ny;C1CC;2\nz;OCC;3\n", "new.csv")
    (arrays,) = open_graphs(new, SETTINGS)
    assert arrays.graph_labels is None and arrays.ids == ("1", "3") and arrays.smiles == ("CC[Se]C", "OCC")
    assert (
        len(arrays.skipped) == 1
        and "new.csv, line 3: molecule '2': 'C1CC' is not a molecule" in arrays.skipped[0]
    )
    options = graph_options(SETTINGS)
    data = from_arrays(arrays, "new", options, vocabulary=old.vocabulary, class_names=old.info.class_names)
    assert data.unseen == {"node atom=Se": 1} and data.labels.tolist() == [-1, -1] and data.info.classes == 2
    # OCC is CCO with its atoms in another order
    assert data.node_feats[-3:].tolist() == old.node_feats[[2, 1, 0]].tolist()


def test_chunks_join_to_the_whole(table):
    path = table("smiles,activity\n" + "".join(f"{'C' * n},{n % 2}\n" for n in range(1, 30)) + "xx,1\n" * 5)
    chunks = list(open_graphs(path, SETTINGS, at_once=4))
    assert [chunk.graphs for chunk in chunks] == [4] * 7 + [1, 0]
    assert [len(id) for chunk in chunks for id in chunk.smiles] == list(range(1, 30))
    assert sum(len(chunk.skipped) for chunk in chunks) == 5 and "line 31" in chunks[-2].skipped[0]
    assert [label for chunk in chunks for label in chunk.graph_labels] == [n % 2 for n in range(1, 30)]
    old = load_smiles(table(), target="activity")
    for chunk in chunks:  # the first has a molecule of one atom, the last has none
        data = from_arrays(chunk, "new", vocabulary=old.vocabulary, class_names=("0", "1"))
        assert len(data) == chunk.graphs and data.edge_feats.shape[1] == 3


def test_a_long_table_is_never_whole_in_memory(tmp_path):
    path = tmp_path / "long.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("smiles\n")
        for _ in range(1000):
            file.write("C\n" * 1000)
    chunks = open_graphs(path, None, at_once=500)
    code = [next(chunks).graphs for _ in range(3)]
    chunks.close()
    assert code == [500] * 3


# --- scaffolds -----------------------------------------------------------------------------------------------------


def test_scaffolds_keep_rings_together():
    smiles = (
        "c1ccccc1",
        "Cc1ccccc1O",
        "C1CCCCC1",
        "CCO",
        "OCC",
        "CC",
        "c1ccccc1CCc1ccccc1",
        "CC(=O)c1ccccc1",
    )
    groups, names = scaffold_groups(smiles)
    assert groups.tolist() == [0, 0, 1, 2, 2, 3, 4, 0] and names[0] == "c1ccccc1"


def test_a_changed_file_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "m.csv"
    seen = []
    for activity in ("a,CCO,x\nb,CCN,y\n", "a,CCO,y\nb,CCN,x\n", "a,CCO,x\nb,CCN,y\n"):
        file.write_text("id,smiles,label\n" + activity)
        dataset = load_smiles(str(file))
        seen.append((dataset.labels.tolist(), dataset.digest))
    assert seen[0] == seen[2] and seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1]
