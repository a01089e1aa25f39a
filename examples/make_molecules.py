"""Write examples/molecules.csv and examples/new_molecules.csv: python examples/make_molecules.py

Scaffolds with substituents in their open places. A molecule is active if it can react as a Michael acceptor: a carbon-
carbon double bond beside a carbonyl. Each active one has inactive twins that differ in bonds alone or nearly so, such
as the saturated chain, the double bond moved by one, or the carbonyl made an alcohol, so that counting atoms says
little, and kinds of bonds much.
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
    "biphenyl": "c1ccc(cc1)-c1ccc({0})cc1{1}",
}
CHAINS = {
    "C=CC(=O)C": "active",  # an enone
    "C=CC(=O)OC": "active",  # an acrylate
    "C(=O)C=C": "active",  # a vinyl ketone
    "NC(=O)C=C": "active",  # an acrylamide
    "CCC(=O)C": "inactive",  # the same without the double bond
    "CCC(=O)OC": "inactive",
    "CC(=O)CC=C": "inactive",  # the double bond one place further
    "C=CC(O)C": "inactive",  # an alcohol where the carbonyl was
    "NC(=O)CC": "inactive",
}
SUBSTITUENTS = ("", "C", "O", "F", "Cl", "OC", "N(C)C", "C#N")
ACCEPTOR = Chem.MolFromSmarts("[CX3]=[CX3]-[CX3]=[OX1]")


def molecules() -> list[tuple[str, str]]:
    """(canonical SMILES, activity), each once, in one random order."""
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
    known, new = listed[:400], [smiles for smiles, _ in listed[400:419]]
    rows = [(f"m{i:03}", smiles, activity) for i, (smiles, activity) in enumerate(known, start=1)]
    write("molecules.csv", ("id", "smiles", "activity"), rows)
    new.insert(7, "O=C(C=C)c1ccccc")  # a ring that is never closed, as lists of molecules have them
    write(
        "new_molecules.csv", ("id", "smiles"), [(f"n{i:02}", smiles) for i, smiles in enumerate(new, start=1)]
    )


def write(name: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    with open(HERE / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([header, *rows])


if __name__ == "__main__":
    main()
