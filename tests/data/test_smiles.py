"""Molecules from SMILES, with errors that name the line."""

import gzip
import sys

import pytest
import torch

from egin_dgl.data.dataset import TENSORS
from egin_dgl.data.fingerprints import scaffold_groups
from egin_dgl.data.prepare import from_arrays
from egin_dgl.data.readers.detect import graph_options, open_graphs
from egin_dgl.data.readers.molecules import import_rdkit, read_molecule
from egin_dgl.data.readers.smiles import load_smiles
from egin_dgl.data.splits import split_by_group_size
from egin_dgl.data.targets import encoded_like
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.parallel import Processes, use_processes
from egin_dgl.training.parallel.workers import chunk_processes

pytest.importorskip("rdkit", reason="molecules are read with RDKit, the extra `chem`")

TABLE = "id,smiles,activity\nethanol,CCO,no\nphenol,Oc1ccccc1,yes\nacetone,CC(C)=O,yes\namine,CCN,no\n"
SETTINGS = {
    "_target_": "egin_dgl.data.load_smiles",
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
    assert graph.node_columns["aromatic"][-1] == "True" and graph.node_columns["ring"][:9] == ["False"] * 9
    kinds = set(zip(graph.edge_columns["bond"], graph.edge_columns["stereo"], strict=True))
    assert ("double", "e") in kinds and ("aromatic", "none") in kinds
    assert set(graph.edge_columns) == {"bond", "conjugated", "ring", "stereo"}


def define(smiles, rich):
    """Bonds of a molecule, and labels of its atoms and bonds, one atom and one bond after the other."""
    Chem, _, _ = import_rdkit()
    molecule = Chem.MolFromSmiles(smiles)
    atoms = [
        (
            a.GetSymbol(),
            a.GetFormalCharge(),
            a.GetTotalNumHs(),
            a.GetDegree(),
            a.GetHybridization().name.lower(),
        )
        + (a.GetChiralTag().name.removeprefix("CHI_").lower(), a.GetNumRadicalElectrons(), a.GetIsotope())
        + (str(a.GetIsAromatic()), str(a.IsInRing()))
        for a in molecule.GetAtoms()
    ]
    bonds = [
        (b.GetBondType().name.lower(), str(b.GetIsConjugated()), str(b.IsInRing()))
        + (b.GetStereo().name.removeprefix("STEREO").lower(),)
        for b in molecule.GetBonds()
    ]
    ends = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()]
    width = (10, 4) if rich else (1, 1)
    return (
        [*ends, *((v, u) for u, v in ends)],
        [a[: width[0]] for a in atoms],
        [b[: width[1]] for b in bonds] * 2,
    )


@pytest.mark.parametrize("features", ["tu", "rich"])
def test_molecules_read_at_once_are_as_defined(features, tmp_path, monkeypatch):
    """In one chunk, in several, and with rich features in several processes."""
    odd = ["[2H]O", "[Na+].[Cl-]", "F/C=C/F", "N[C@@H](C)C(=O)O", "[CH3]", "*CC", "[NH3]->[Pt]", "C", "C#N"]
    smiles = [*odd, "Cc1ccc2c(c1)C(=O)c1ccccc1C2=O", "C1CC", "C1CC2CC1CC2"] * 3
    path = tmp_path / "m.csv"
    path.write_text("smiles,label\n" + "".join(f"{text},{i % 2}\n" for i, text in enumerate(smiles)))

    def read(processes=None):
        with use_processes(processes or Processes()):
            return load_smiles(path, features=features, on_invalid="skip", cache=False)

    found = read()
    valid = [text for text in smiles if text != "C1CC"]
    assert found.smiles == tuple(valid) and len(found.skipped) == 3
    for number, text in enumerate(valid):
        ends, atoms, bonds = define(text, features == "rich")
        first, last = found.node_offsets[number : number + 2].tolist()
        edges = slice(*found.edge_offsets[number : number + 2].tolist())
        pairs = zip((found.src[edges] - first).tolist(), (found.dst[edges] - first).tolist(), strict=True)
        assert list(pairs) == ends
        sides = (found.node_feats[first:last], found.info.node_names, atoms)
        for feats, names, labels in (sides, (found.edge_feats[edges], found.info.edge_names, bonds)):
            hot = [[names[i].partition("=")[2] for i in row.nonzero().flatten().tolist()] for row in feats]
            assert hot == [[str(label) for label in one] for one in labels]
    monkeypatch.setattr("egin_dgl.data.readers.smiles.CHUNK_SIZE", 5)
    several = chunk_processes(2) if features == "rich" else Processes()
    for other in (read(), read(several)):
        assert (other.info, other.skipped) == (found.info, found.skipped)
        assert all(torch.equal(getattr(found, name), getattr(other, name)) for name in TENSORS)


@pytest.mark.parametrize("bad", ["C1CC", "C(C)(C)(C)(C)C", "xyz", "", "CCO ethanol", "[Xx]", "C\x00", "é"])
def test_invalid_smiles(bad):
    with pytest.raises(DataError) as caught:
        read_molecule(bad)
    assert "\n" not in str(caught.value)


def test_table_of_molecules(table):
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


def test_invalid_molecule_is_an_error_or_skipped(table):
    path = table(TABLE + "odd,C1CC,yes\nlast,CCC,no\nworse,xx,no\n")
    with pytest.raises(
        DataError, match="line 6: molecule 'odd': 'C1CC' is not a molecule.*dataset.on_invalid=skip"
    ):
        load_smiles(path, target="activity")
    data = load_smiles(path, target="activity", on_invalid="skip")
    assert data.ids[-1] == "last" and len(data) == 5
    assert (
        "2 molecule(s) skipped: " in data.notes[0]
        and "line 6: molecule 'odd': 'C1CC' is not a molecule" in data.notes[0]
        and "line 8: molecule 'worse': 'xx' is not" in data.notes[0]
    )


def test_default_ids_are_line_numbers(table):
    data = load_smiles(table("smiles,label\nCCO,a\n\nCCN,b\n"))
    assert data.ids == ("2", "4")
    with pytest.raises(DataError, match="line 2: molecule '2': 'xx' is not"):
        load_smiles(table("smiles,label\nxx,a\nCCN,b\n", "other.csv"))
    assert load_smiles(table(), target="activity", id="smiles").ids[0] == "CCO"


BAD = {
    "no smiles": (
        {"smiles": "SMILES"},
        DataError,
        "has no column 'SMILES', only 'id', 'smiles', 'activity'; set dataset.smiles=NAME",
    ),
    "no label": ({"target": "label"}, DataError, "has no column 'label', only .*; set dataset.target=NAME"),
    "two kinds": ({"target": ["activity", "id"]}, DataError, "the targets hold 'activity' text, 'id' text"),
    "twice": ({"target": ["activity", "activity"]}, ConfigError, "dataset.target lists a column twice"),
    "features": ({"features": "all"}, ConfigError, "dataset.features must be 'tu' or 'rich', got 'all'"),
    "on_invalid": ({"on_invalid": "ignore"}, ConfigError, "dataset.on_invalid must be 'raise' or 'skip'"),
    "no id": ({"id": "name"}, DataError, "has no column 'name'.*dataset.id"),
    "no split": ({"split_column": "fold"}, DataError, "has no column 'fold'.*dataset.split_column"),
}


@pytest.mark.parametrize(("options", "kind", "message"), BAD.values(), ids=BAD.keys())
def test_errors_of_options(table, options, kind, message):
    with pytest.raises(kind, match=message):
        load_smiles(table(), **{"target": "activity"} | options)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,CCO,\nb,CC,nan\n", "no graph has a value of 'activity'"),
        (
            "a,CCO,1.5\nb,CC,active\nc,C,0\n",
            "line 3: the target 'activity' holds 'active' among numbers: .*task=multiclass",
        ),
        ("", "lists no molecule that can be read"),
    ],
)
def test_invalid_classes(table, rows, message):
    with pytest.raises(DataError, match=message):
        load_smiles(table("id,smiles,activity\n" + rows), target="activity")


def test_unreadable_files(tmp_path):
    for path, message in ((tmp_path / "none.csv", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(DataError, match=f"cannot read .*: {message}"):
            load_smiles(path)


def test_rdkit_prints_nothing(table, capfd, caplog):
    path = table(TABLE + "x,C1CC,no")
    load_smiles(path, target="activity", on_invalid="skip", cache=False)
    assert "SMILES Parse Error" not in capfd.readouterr().err and "1 molecule(s) skipped" in caplog.text


def test_missing_rdkit_names_the_package(table, monkeypatch):
    import_rdkit.cache_clear()
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ConfigError, match=r"molecules need RDKit .*: pip install '\.\[chem\]'"):
        load_smiles(table())
    import_rdkit.cache_clear()


# --- prediction ----------------------------------------------------------------------------------------------------


def test_new_molecules_are_encoded_as_the_training_set(table):
    old = load_smiles(table(), target="activity")
    new = table("name;smiles;id\nx;CC[Se]C;1\ny;C1CC;2\nz;OCC;3\n", "new.csv")
    (arrays,) = open_graphs(new, SETTINGS)
    assert arrays.targets is None and arrays.ids == ("1", "3") and arrays.smiles == ("CC[Se]C", "OCC")
    assert (
        len(arrays.skipped) == 1
        and "new.csv, line 3: molecule '2': 'C1CC' is not a molecule" in arrays.skipped[0]
    )
    options = graph_options(SETTINGS)
    data = from_arrays(arrays, "new", options, vocabulary=old.vocabulary, targets=encoded_like(old.info))
    assert data.unseen == {"node atom=Se": 1} and data.labels.tolist() == [-1, -1] and data.info.classes == 2
    # OCC is CCO with its atoms in another order
    assert data.node_feats[-3:].tolist() == old.node_feats[[2, 1, 0]].tolist()


def test_chunks_of_a_table(table):
    path = table("smiles,activity\n" + "".join(f"{'C' * n},{n % 2}\n" for n in range(1, 30)) + "xx,1\n" * 5)
    chunks = list(open_graphs(path, SETTINGS, chunk_size=4))
    assert [chunk.graphs for chunk in chunks] == [4] * 7 + [1, 0]
    assert [len(id) for chunk in chunks for id in chunk.smiles] == list(range(1, 30))
    assert sum(len(chunk.skipped) for chunk in chunks) == 5 and "line 31" in chunks[-2].skipped[0]
    assert [label for chunk in chunks for label in chunk.targets[:, 0]] == [n % 2 for n in range(1, 30)]
    old = load_smiles(table(), target="activity")
    for chunk in chunks:  # the first has a molecule of one atom, the last has none
        data = from_arrays(chunk, "new", vocabulary=old.vocabulary, targets=encoded_like(old.info))
        assert len(data) == chunk.graphs and data.edge_feats.shape[1] == 3


def test_long_table_is_streamed(tmp_path):
    path = tmp_path / "long.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("smiles\n")
        for _ in range(100):
            file.write("C\n" * 1000)
    chunks = open_graphs(path, None, chunk_size=500)
    code = [next(chunks).graphs for _ in range(3)]
    chunks.close()
    assert code == [500] * 3


# --- scaffolds -----------------------------------------------------------------------------------------------------


def test_scaffold_groups():
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


def test_changed_file_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "m.csv"
    seen = []
    for activity in ("a,CCO,x\nb,CCN,y\n", "a,CCO,y\nb,CCN,x\n", "a,CCO,x\nb,CCN,y\n"):
        file.write_text("id,smiles,label\n" + activity)
        dataset = load_smiles(str(file))
        seen.append((dataset.labels.tolist(), dataset.digest))
    assert seen[0] == seen[2] and seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1]


def test_many_skipped_molecules_make_a_short_note(table):
    path = table(TABLE + "".join(f"odd{i},C1CC,yes\n" for i in range(40)))
    for _ in range(2):  # read, then from the cache
        data = load_smiles(path, target="activity", on_invalid="skip")
        (note,) = data.notes
        assert note.startswith("40 molecule(s) skipped: ") and note.endswith(" and 37 more, see summary.json")
        assert "line 8: " in note and "line 9: " not in note and len(note) < 400
        assert len(data.skipped) == 40 and "'odd39'" in data.skipped[-1]


@pytest.mark.parametrize("smiles", ["C\ud800", "C" * 10_001], ids=["raises", "long"])
def test_what_rdkit_cannot_read_is_an_invalid_molecule(smiles):
    with pytest.raises(DataError) as caught:
        read_molecule(smiles)
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


def test_a_long_smiles_is_skipped_in_training_and_prediction(table):
    path = table(TABLE + f"polymer,{'C' * 100_000},yes\n")
    assert "has 100000 characters" in load_smiles(path, target="activity", on_invalid="skip").skipped[0]
    (arrays,) = open_graphs(path, SETTINGS)
    assert arrays.graphs == 4 and "molecule 'polymer'" in arrays.skipped[0]


def test_prediction_finds_columns_in_any_case(table):
    (arrays,) = open_graphs(table(TABLE.replace("smiles,activity", "SMILES,Activity")), SETTINGS)
    assert arrays.graphs == 4 and arrays.targets[:, 0].tolist() == ["no", "yes", "yes", "no"]
    for header in ("SMILES,Smiles", "structure,activity"):
        with pytest.raises(DataError, match="has no column 'smiles', only 'id', .*; rename one to 'smiles'$"):
            next(open_graphs(table(TABLE.replace("smiles,activity", header)), SETTINGS))
    with pytest.raises(DataError, match="set dataset.smiles=NAME"):
        load_smiles(table(TABLE.replace("smiles", "structure")), target="activity")


def test_acyclic_molecules_have_scaffolds_of_their_own_or_one():
    smiles = ("CCO", "Cc1ccccc1", "CCN", "Oc1ccccc1", "CCO")
    assert scaffold_groups(smiles)[0].tolist() == [0, 1, 2, 1, 0]
    groups, names = scaffold_groups(smiles, acyclic=True)
    assert groups.tolist() == [0, 1, 0, 1, 0] and names == ["", "c1ccccc1"]


@pytest.mark.parametrize(("name", "target", "sizes"), [("bace", "pIC50", (1210, 151, 152)), ("esol", "log_solubility", (902, 113, 113))])  # fmt: skip
def test_sizes_of_the_scaffold_split_of_real_sets(molecules, name, target, sizes):
    data = load_smiles(molecules(name), target=target)
    split = split_by_group_size(scaffold_groups(data.smiles, acyclic=True)[0], data.labels.numpy()).split(
        0, True
    )
    assert (len(split.train), len(split.validation), len(split.test)) == sizes
