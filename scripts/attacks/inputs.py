"""Damaged input files of every format: read consistently, or refused in one sentence that names the file."""

import io
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import torch

from attacks.attempts import Fall, attempt
from attacks.mutations import damage_bytes, damage_text
from egin_dgl.backend import import_dgl
from egin_dgl.data import GraphDataset
from egin_dgl.data.readers.csv_graphs import load_csv
from egin_dgl.data.readers.dgl_file import load_dgl_file
from egin_dgl.data.readers.smiles import load_smiles
from egin_dgl.data.readers.tu import load_tu

CSV = {
    "graphs.csv": "id,label,fold\na,toxic,train\nb,harmless,test\nc,toxic,train\n",
    "nodes.csv": "graph,node,atom,charge\na,x,C,0.5\nb,1,N,0\na,y,O,-1\nb,2,C,1e-3\na,z,C,0\nc,1,C,1\n",
    "edges.csv": "graph,source,target,bond\na,x,y,single\nb,1,2,double\na,y,z,double\n",
}
TU = {
    "T_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "T_graph_indicator.txt": "1\n1\n1\n2\n2\n",
    "T_graph_labels.txt": "1\n-1\n",
    "T_node_labels.txt": "0, 7\n-3, 7\n5, 8\n0, 7\n0, 7\n",
    "T_node_attributes.txt": "0.5\n1e-3\n-2\n.25\n3.\n",
    "T_edge_labels.txt": "1\n1\n2\n2\n1\n1\n",
    "T_edge_attributes.txt": "0.1, 1\n0.1, 1\n0.2, 1\n0.2, 1\n0.3, 1\n0.3, 1\n",
}
MOLECULES = ["CCO", "c1ccccc1", "CC(=O)N", "C[C@H](N)C(=O)O", "[Na+].[Cl-]", "F/C=C/F"]
KINDS = ("csv", "smiles", "tu", "zip", "dgl")


class DamagedInputs:
    """Good files of every format below `place`, of which each attempt damages one or two."""

    def __init__(self, place: Path):
        self.place = place
        self.files = {"csv": encode(CSV), "tu": encode(TU, "T/"), "zip": {"T.zip": zip_files(TU)}}
        self.files |= {"smiles": {"m.csv": molecule_table()}, "dgl": {"g.bin": dgl_file(place)}}

    def __call__(self, random: Random, kind: str | None = None) -> str | None:
        """Damage the files of a format, read them, and return the sentence if they are refused."""
        kind = kind or random.choice(KINDS)
        directory, files = self.place / kind, self.files[kind]
        broken = random.sample(sorted(files), min(len(files), random.randint(1, 2)))
        changed = {name: change(files[name], kind, random) for name in broken}
        for name, content in (files | changed).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            # A damaged file of DGL is tried in a fork: DGL itself may crash.
            message = attempt(partial(read, kind, directory), self.place, may_fork=kind == "dgl")
        except Exception as error:
            raise Fall(f"{kind} {changed}: {error!r}") from error
        if message is not None and str(directory) not in message:
            raise Fall(f"{kind} {changed}: the sentence names no file: {message}")
        return message


def read(kind: str, directory: Path) -> None:
    readers: dict[str, Callable[[], GraphDataset]] = {
        "csv": lambda: load_csv(str(directory), cache=False),
        "smiles": lambda: load_smiles(str(directory / "m.csv"), cache=False),
        "dgl": lambda: load_dgl_file(str(directory / "g.bin"), cache=False),
    }
    check_dataset(readers.get(kind, lambda: load_tu("T", directory, url=None, cache=False))())


def check_dataset(data: GraphDataset) -> None:
    nodes = len(data.node_feats)
    if not all(bool(feats.isfinite().all()) for feats in (data.node_feats, data.edge_feats)):
        raise Fall("it was read with features that are not finite")
    if len(data.src) != len(data.dst) or len(data.src) != len(data.edge_feats):
        raise Fall("it was read with edges of different numbers")
    if (
        len(data.src)
        and not 0
        <= int(min(data.src.min(), data.dst.min()))
        <= int(max(data.src.max(), data.dst.max()))
        < nodes
    ):
        raise Fall("it was read with edges between nodes that do not exist")
    if not len(data.names) == len(data.labels) == len(data):
        raise Fall("it was read with names or labels of other graphs")


def change(content: bytes, kind: str, random: Random) -> bytes:
    return (damage_text if kind == "csv" and random.random() < 0.5 else damage_bytes)(content, random)


def encode(files: dict[str, str], directory: str = "") -> dict[str, bytes]:
    return {f"{directory}{name}": text.encode() for name, text in files.items()}


def zip_files(files: dict[str, str]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(f"T/{name}"), text)
    return memory.getvalue()


def molecule_table() -> bytes:
    rows = [f"m{i},{smiles},{'ab'[i % 2]}\n" for i, smiles in enumerate(MOLECULES * 4)]
    return ("id,smiles,label\n" + "".join(rows)).encode()


def dgl_file(place: Path) -> bytes:
    dgl, generator, graphs = import_dgl(), torch.Generator().manual_seed(0), []
    for _ in range(6):
        ends = torch.randint(0, 5, (2, 8), generator=generator)
        graph = dgl.graph((ends[0], ends[1]), num_nodes=5)
        graph.ndata["a"] = torch.rand(5, generator=generator)
        graph.edata["b"] = torch.randint(0, 3, (8,), generator=generator)
        graphs.append(graph)
    path = place / "whole.bin"
    dgl.save_graphs(str(path), graphs, {"y": torch.arange(6) % 2})
    return path.read_bytes()
