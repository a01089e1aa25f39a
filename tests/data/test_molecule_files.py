"""SDF and SMILES files hold the molecules and values that tables hold."""

import gzip
from pathlib import Path

import pytest
import torch

from egin_dgl.data.readers.detect import open_graphs
from egin_dgl.data.readers.molecule_files import read_molecule_chunks
from egin_dgl.data.readers.smiles import load_smiles
from egin_dgl.errors import DataError

Chem = pytest.importorskip("rdkit.Chem", reason="molecules are read with RDKit, the extra `chem`")

MOLECULES = {
    "ethanol": "CCO",
    "phenol": "Oc1ccccc1",
    "salt": "C[NH3+].[Cl-]",
    "amine": "CCN",
    "acid": "CC(=O)O",
}
VALUES = {"ethanol": "-0.77", "phenol": "0.5", "salt": "", "amine": "1.25", "acid": "-1e-3"}
FIVE_BONDS = """odd
     written by hand

  6  5  0  0  0  0  0  0  0  0999 V2000
""" + "".join(f"    {x}.0000    0.0000    0.0000 C   0  0\n" for x in range(6)) + "".join(
    f"  1  {atom}  1  0\n" for atom in range(2, 7)
) + "M  END\n>  <value>\n7.5\n\n$$$$\n"  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EGIN_CACHE", str(tmp_path / "cache"))


def sdf_records():
    for name, smiles in MOLECULES.items():
        molecule = Chem.MolFromSmiles(smiles)
        molecule.SetProp("_Name", name)
        if VALUES[name]:
            molecule.SetProp("value", VALUES[name])
        molecule.SetProp("source", "two\nlines")
        yield Chem.SDWriter.GetText(molecule)


@pytest.fixture
def sdf(tmp_path):
    path = tmp_path / "molecules.sdf"
    path.write_text("".join(sdf_records()))
    return path


def test_an_sdf_file_is_the_table_of_its_molecules(sdf, tmp_path):
    rows = [f"{name},{smiles},{VALUES[name]}\n" for name, smiles in MOLECULES.items()]
    (tmp_path / "table.csv").write_text("id,smiles,value\n" + "".join(rows))
    table, data = (load_smiles(path, target="value") for path in (tmp_path / "table.csv", sdf))
    assert data.ids == table.ids == ("ethanol", "phenol", "amine", "acid") and data.info.task == "regression"
    assert torch.equal(data.labels, table.labels) and data.info.node_names == table.info.node_names
    same = [[Chem.CanonSmiles(smiles) for smiles in one.smiles] for one in (table, data)]
    assert same[0] == same[1]
    assert torch.equal(data.node_offsets, table.node_offsets) and torch.equal(
        data.edge_offsets, table.edge_offsets
    )


def test_gzip_and_windows_line_ends(sdf, tmp_path):
    text = sdf.read_bytes()
    for name, content in {"a.sdf.gz": gzip.compress(text), "b.SDF": text.replace(b"\n", b"\r\n")}.items():
        (tmp_path / name).write_bytes(content)
        assert load_smiles(tmp_path / name, target="value").ids == load_smiles(sdf, target="value").ids


def test_records_are_streamed_and_chunks_have_the_same_columns(sdf):
    chunks = list(read_molecule_chunks(sdf, 2))
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    assert {tuple(chunk.columns) for chunk in chunks} == {("smiles", "id", "value", "source")}
    assert (
        chunks[1].columns["value"].tolist() == ["", "1.25"] and chunks[0].columns["source"][0] == "two\nlines"
    )
    lines = sdf.read_text().splitlines()
    assert [lines[line - 1] for chunk in chunks for line in chunk.lines] == list(MOLECULES)


def test_an_invalid_record_is_an_error_or_skipped(sdf, tmp_path):
    with sdf.open("a") as file:
        file.write(FIVE_BONDS + "nothing\n\n\nM  END\n$$$$\n")
    message = r"molecules.sdf, line \d+: molecule 'odd': not a molecule \(.*valence.*\); correct it, or skip"
    with pytest.raises(DataError, match=message):
        load_smiles(sdf, target="value")
    data = load_smiles(sdf, target="value", on_invalid="skip")
    assert len(data) == 4 and any("2 molecule(s) skipped: " in note for note in data.notes)
    arrays = list(open_graphs(sdf, chunk_size=4))
    assert [a.graphs for a in arrays] == [4, 1] and "molecule 'nothing': not a structure" in arrays[
        1
    ].skipped[1]


def test_prediction_finds_targets_and_names_of_the_run(sdf):
    settings = {
        "_target_": "egin_dgl.data.load_smiles",
        "smiles": "structure",
        "target": "value",
        "id": "name",
    }
    (arrays,) = open_graphs(sdf, settings)
    assert arrays.ids == tuple(MOLECULES) and arrays.targets[:, 0].tolist() == [-0.77, 0.5, None, 1.25, -1e-3]


def test_smiles_files(tmp_path):
    text = "SMILES name\nCCO ethanol 95 %\n\nc1ccccc1\nCO |$_AV:1;2$|\tmethanol\nC1CC broken\n"
    (tmp_path / "new.smi").write_text(text)
    (arrays,) = open_graphs(tmp_path / "new.smi")
    assert arrays.ids == ("ethanol 95 %", "4", "methanol") and arrays.targets is None
    assert (
        arrays.smiles == ("CCO", "c1ccccc1", "CO |$_AV:1;2$|")
        and "line 6: molecule 'broken'" in arrays.skipped[0]
    )
    with pytest.raises(DataError, match="new.smi has no column 'label', only 'smiles', 'id'"):
        load_smiles(tmp_path / "new.smi", on_invalid="skip")


@pytest.mark.parametrize("text", ["", "$$$$\n$$$$\n", "\0\n", "M  END\n" * 3])
def test_an_sdf_file_without_molecules(tmp_path, text):
    (tmp_path / "empty.sdf").write_text(text + (">  <label>\n1\n\n" if text else ""))
    with pytest.raises(DataError, match="empty.sdf") as caught:
        load_smiles(tmp_path / "empty.sdf", on_invalid="skip")
    assert "\n" not in str(caught.value)


def test_esol_through_sdf(molecules, tmp_path):
    rows = [line.split(",") for line in Path(molecules("esol")).read_text().splitlines()[1:101]]
    rows = [row for row in rows if len(row) == 3]
    with Chem.SDWriter(str(tmp_path / "esol.sdf")) as writer:
        for name, smiles, value in rows:
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", name)
            molecule.SetProp("log_solubility", value)
            writer.write(molecule)
    data = load_smiles(tmp_path / "esol.sdf", target="log_solubility")
    assert data.labels[:, 0].tolist() == [float(value) for _, _, value in rows]
    flat = [Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False) for _, smiles, _ in rows]
    assert flat == [Chem.MolToSmiles(Chem.MolFromSmiles(one), isomericSmiles=False) for one in data.smiles]
