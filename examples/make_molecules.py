"""Generate molecules.csv, new_molecules.csv, solubility.csv, assays.csv and tables/: python examples/make_molecules.py

The molecules are scaffolds with a chain and a substituent. A molecule is active if it is a Michael acceptor: a carbon-carbon double
bond next to a carbonyl group. For each active molecule there are inactive ones that differ only or mainly in their bonds: the saturated
chain, the double bond one position further, or an alcohol in place of the carbonyl. Atom counts therefore predict little, bond types
predict much. As in a real assay, a few labels are wrong. tables/ holds the first 120 molecules as tables of nodes and edges.

solubility.csv has two real targets, sums of contributions of the parts of a molecule, with noise. assays.csv has three assays, each
of which finds a part. A tenth of the melting points and a sixth of the assays were not measured.
"""

import csv
import itertools
import random
from pathlib import Path

from rdkit import Chem

HERE = Path(__file__).resolve().parent
SCAFFOLDS = {
    "benzene": "c1ccc({0})cc1{1}",
    "pyridine": "c1cnc({0})cc1{1}",
    "thiophene": "c1sc({0})cc1{1}",
    "furan": "c1oc({0})cc1{1}",
    "naphthalene": "c1ccc2cc({0})ccc2c1{1}",
    "cyclohexane": "C1CCC({0})CC1{1}",
    "piperidine": "C1CN({0})CCC1{1}",
    "cyclopentane": "C1CC({0})CC1{1}",
    "morpholine": "C1OCCN({0})C1{1}",
    "pyrimidine": "c1nc({0})ncc1{1}",
    "indole": "c1ccc2[nH]c({0})cc2c1{1}",
    "quinoline": "c1ccc2nc({0})ccc2c1{1}",
    "diphenylmethane": "c1ccccc1Cc1ccc({0})cc1{1}",
    "biphenyl": "c1ccc(cc1)-c1ccc({0})cc1{1}",
}
CHAINS = {
    "C=CC(=O)C": "active",  # an enone
    "C=CC(=O)OC": "active",  # an acrylate
    "C(=O)C=C": "active",  # a vinyl ketone
    "NC(=O)C=C": "active",  # an acrylamide
    "CCC(=O)C": "inactive",  # the same without the double bond
    "CCC(=O)OC": "inactive",
    "CC(=O)CC=C": "inactive",  # the double bond one position further
    "C=CC(O)C": "inactive",  # an alcohol in place of the carbonyl
    "NC(=O)CC": "inactive",
}
SUBSTITUENTS = ("", "C", "O", "F", "Cl", "OC", "N(C)C", "C#N")
LABEL_NOISE = 0.06  # share of molecules with a wrong label
ACCEPTOR = Chem.MolFromSmarts("[CX3]=[CX3]-[CX3]=[OX1]")
# Contribution of each match to log solubility (mol/l) and to the melting point (°C).
CONTRIBUTIONS = {
    "[#6]": (-0.3, 4),
    "a": (-0.1, 6),
    "[OX2H]": (1.1, 35),
    "[#7;!H0]": (0.7, 40),
    "[OX1]": (0.5, 12),
    "C#N": (0.1, 25),
    "[F,Cl]": (-0.6, 10),
    "C=C": (-0.2, 8),
}
ASSAYS = {"electrophile": ACCEPTOR, "hydrogen_donor": Chem.MolFromSmarts("[N,O,n;!H0]")}
ASSAYS |= {"aromatic_halogen": Chem.MolFromSmarts("c[F,Cl]")}


def molecules() -> list[tuple[str, str]]:
    """Return distinct pairs (canonical SMILES, activity) in a fixed random order."""
    found = {}
    for scaffold, chain, rest in itertools.product(SCAFFOLDS.values(), CHAINS, SUBSTITUENTS):
        molecule = Chem.MolFromSmiles(scaffold.format(chain, rest))
        active = molecule.HasSubstructMatch(ACCEPTOR)
        assert active == (CHAINS[chain] == "active"), Chem.MolToSmiles(molecule)
        found[Chem.MolToSmiles(molecule)] = "active" if active else "inactive"
    listed = sorted(found.items())
    random.Random(0).shuffle(listed)
    return listed


def main() -> None:
    listed = molecules()
    assay = random.Random(1)
    rows = []
    for i, (smiles, activity) in enumerate(listed[:400], start=1):
        wrong = assay.random() < LABEL_NOISE
        rows.append((f"m{i:03}", smiles, flip(activity) if wrong else activity))
    write("molecules.csv", ("id", "smiles", "activity"), rows)
    new = [smiles for smiles, _ in listed[400:419]]
    new.insert(7, "O=C(C=C)c1ccccc")  # invalid SMILES: the ring is not closed
    write(
        "new_molecules.csv", ("id", "smiles"), [(f"n{i:02}", smiles) for i, smiles in enumerate(new, start=1)]
    )
    write_tables(rows[:120])
    write(
        "solubility.csv", ("id", "smiles", "log_solubility", "melting_point"), solubilities(listed[419:669])
    )
    write("assays.csv", ("id", "smiles", *ASSAYS), assays(listed[500:800]))


def solubilities(listed: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Rows of solubility.csv: sums of contributions with noise; some melting points are missing."""
    noise, rows = random.Random(2), []
    for i, (smiles, _) in enumerate(listed, start=1):
        molecule = Chem.MolFromSmiles(smiles)
        counts = [len(molecule.GetSubstructMatches(Chem.MolFromSmarts(part))) for part in CONTRIBUTIONS]
        pairs = zip(counts, CONTRIBUTIONS.values(), strict=True)
        solubility, melting = (
            sum(values) for values in zip(*((n * a, n * b) for n, (a, b) in pairs), strict=True)
        )
        solubility, melting = 0.5 + solubility + noise.gauss(0, 0.2), melting - 60 + noise.gauss(0, 8)
        rows.append(
            (f"s{i:03}", smiles, f"{solubility:.2f}", f"{melting:.1f}" if noise.random() > 0.1 else "")
        )
    return rows


def assays(listed: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Rows of assays.csv: whether each assay finds its part; some were not made."""
    lab, rows = random.Random(3), []
    for i, (smiles, _) in enumerate(listed, start=1):
        molecule = Chem.MolFromSmiles(smiles)
        found = [str(int(molecule.HasSubstructMatch(part))) for part in ASSAYS.values()]
        rows.append((f"a{i:03}", smiles, *(result if lab.random() > 1 / 6 else "" for result in found)))
    return rows


def flip(activity: str) -> str:
    return "inactive" if activity == "active" else "active"


def write_tables(rows: list[tuple[str, str, str]]) -> None:
    """Write molecules as graphs.csv, nodes.csv and edges.csv."""
    graphs, nodes, edges = [], [], []
    for i, (name, smiles, activity) in enumerate(rows):
        molecule = Chem.MolFromSmiles(smiles)
        graphs.append((name, activity, ("train", "train", "train", "validation", "test")[i % 5]))
        for atom in molecule.GetAtoms():
            nodes.append((name, atom.GetIdx(), atom.GetSymbol(), f"{atom.GetMass():.3f}"))
        for bond in molecule.GetBonds():
            ends = (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
            edges.append((name, *ends, bond.GetBondType().name.lower()))
    write("tables/graphs.csv", ("id", "label", "split"), graphs)
    write("tables/nodes.csv", ("graph", "node", "atom", "mass"), nodes)
    write("tables/edges.csv", ("graph", "source", "target", "bond"), edges)


def write(name: str, header: tuple[str, ...], rows: list[tuple]) -> None:
    (HERE / name).parent.mkdir(exist_ok=True)
    with open(HERE / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([header, *rows])


if __name__ == "__main__":
    main()
