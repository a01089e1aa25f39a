"""The benchmark of molecules: its split files, its results and their tables."""

from pathlib import Path

import pandas as pd
import pytest
from benchmark import load

molecules = load(["molecules"])
PLANNED = pd.DataFrame(
    [
        {"data": "ESOL", "split": "random", "model": model, "seed": seed, "metric": "rmse"}
        for model in ("GINE", "chemprop")
        for seed in (0, 1)
    ]
)


def results(*rows):
    made = [dict(zip(("model", "seed", "test", "cpu_seconds"), row, strict=True)) for row in rows]
    others = {"log_loss": 0.5, "calibrated_log_loss": 0.25, "processor": "one"}
    return pd.DataFrame([{"data": "ESOL", "split": "random", **row, **others} for row in made])


def test_tables_have_mean_and_standard_error_and_mark_what_is_missing():
    found = results(("GINE", 0, 1.0, 10.0), ("GINE", 1, 1.2, 20.0), ("chemprop", 0, 1.3, 2000.0))
    text = molecules.format_tables(found, PLANNED)
    assert "| ESOL, rmse | random | 1.100 ± 0.100 | 1.300 (1 of 2 seeds) |" in text
    assert "| ESOL, rmse | random | 15 | 2,000 | one |" in text
    elsewhere = pd.concat([found[:2], found[2:].assign(processor="another")])
    assert "| 2,000 | another, one |" in molecules.format_tables(elsewhere, PLANNED)
    assert "| ESOL, rmse | random | missing | missing |" in molecules.format_tables(found[:0], PLANNED)
    whole = pd.concat([found, results(("chemprop", 1, 1.3, 2000.0))])
    assert "| **1.100 ± 0.100** | 1.300 ± 0.000 |" in molecules.format_tables(whole, PLANNED)
    calibration = molecules.format_calibration(found[:2], PLANNED)
    assert calibration.splitlines()[2:] == ["| ESOL | random | GINE | 2 | 0.500 | 0.250 |"]


def test_an_interrupted_benchmark_makes_the_fits_that_it_lacks(tmp_path, monkeypatch):
    made = []

    def measure(fit, root, chemprop):
        if len(made) == 2 and made[-1] is not None:
            made.append(None)
            raise KeyboardInterrupt
        made.append(fit)
        return molecules.Score(test=0.5, cpu_seconds=1.0)

    monkeypatch.setattr(molecules, "RESULTS", tmp_path / "results.csv")
    monkeypatch.setattr(molecules, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        molecules.run(tmp_path, "'ESOL'.*random.*(GINE|chemprop)", None)
    assert len(molecules.read_results()) == 2
    for _ in range(2):
        molecules.run(tmp_path, "'ESOL'.*random.*(GINE|chemprop)", None)
    assert [fit.seed for fit in made if fit] == [
        0,
        1,
        2,
    ]  # none twice, and none of chemprop without its Python
    assert molecules.read_results()["seed"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("split", ["random", "scaffold"])
def test_split_files_hold_each_valid_molecule_once(split, tmp_path):
    pytest.importorskip("rdkit")
    source = Path(__file__).resolve().parent.parent / "examples" / "solubility.csv"
    table = pd.read_csv(source)
    broken = pd.concat(
        [table, table.head(1).assign(smiles="C1CC"), table.head(1).assign(log_solubility=None)]
    )
    broken.to_csv(tmp_path / "molecules.csv", index=False)
    data = molecules.MoleculeSet("molecules.csv", ("log_solubility",), "rmse")
    files = [tmp_path / f"{seed}.csv" for seed in (0, 1)]
    for seed, file in enumerate(files):
        molecules.write_split(data, tmp_path, split, seed, file)
    first, second = map(pd.read_csv, files)
    assert first["smiles"].tolist() == table["smiles"].tolist()
    shares = first["split"].value_counts(normalize=True)
    assert shares["train"] == pytest.approx(0.8, abs=0.03) and shares["test"] == pytest.approx(0.1, abs=0.03)
    assert first["split"].equals(second["split"]) == (split == "scaffold")
