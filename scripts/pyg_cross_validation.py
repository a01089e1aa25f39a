"""Ten-fold cross-validation with PyG, for comparison of whole runs; independent of this package.

    pip install torch_geometric
    python scripts/pyg_cross_validation.py MUTAG --root FOLDER --epochs 100 [--fused]

GINE with a readout of every layer, PyG's reader and DataLoader, Adam; validation and test set are evaluated after every
epoch; two processes with five folds each, one thread per process. Nothing is logged, saved or resumed.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from sklearn.model_selection import KFold
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data
from torch_geometric.io import read_tu_data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, global_add_pool

HIDDEN, LAYERS, DROPOUT, BATCH, FOLDS, PROCESSES = 64, 4, 0.5, 32, 10, 2


class GINE(nn.Module):
    def __init__(self, node_dim: int, edge_dim: int, classes: int):
        super().__init__()
        sizes = [node_dim] + [HIDDEN] * LAYERS
        self.convs = nn.ModuleList(GINEConv(mlp(size), edge_dim=edge_dim) for size in sizes[:-1])
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in self.convs)
        self.heads = nn.ModuleList(nn.Linear(size, classes) for size in sizes)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, batch: Batch) -> Tensor:
        h = batch.x
        total = self.dropout(self.heads[0](global_add_pool(h, batch.batch, batch.num_graphs)))
        for conv, norm, head in zip(self.convs, self.norms, self.heads[1:], strict=True):
            h = torch.relu(norm(conv(h, batch.edge_index, batch.edge_attr)))
            total = total + self.dropout(head(global_add_pool(h, batch.batch, batch.num_graphs)))
        return total


def mlp(size: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN)
    )


def read(name: str, root: Path) -> list[Data]:
    data, slices, _ = read_tu_data(str(root / name), name)
    graphs = []
    for i in range(len(slices["y"]) - 1):
        nodes, edges = (slice(int(slices[key][i]), int(slices[key][i + 1])) for key in ("x", "edge_index"))
        edge_index = data.edge_index[:, edges]
        graphs.append(
            Data(data.x[nodes].float(), edge_index, data.edge_attr[edges].float(), y=data.y[i : i + 1])
        )
    return graphs


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    correct = sum(int((model(batch).argmax(dim=1) == batch.y).sum()) for batch in loader)
    return correct / len(loader.dataset)


def train(graphs: list[Data], train_set, validation_set, test_set, epochs: int, fused: bool) -> float:
    """Test accuracy at the epoch best on validation."""
    loaders = {
        name: DataLoader([graphs[i] for i in indices], BATCH, shuffle=name == "train")
        for name, indices in (("train", train_set), ("validation", validation_set), ("test", test_set))
    }
    classes = int(max(graph.y for graph in graphs)) + 1
    model = GINE(graphs[0].x.shape[1], graphs[0].edge_attr.shape[1], classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, **({"fused": True} if fused else {}))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.5)
    best = (-1.0, 0.0)
    for _ in range(epochs):
        model.train()
        for batch in loaders["train"]:
            optimizer.zero_grad()
            cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
        scheduler.step()
        best = max(best, (accuracy(model, loaders["validation"]), accuracy(model, loaders["test"])))
    return best[1]


def run_folds(process: int, name: str, root: Path, epochs: int, fused: bool) -> list[float]:
    torch.set_num_threads(1)
    graphs = read(name, root)
    split = KFold(FOLDS, shuffle=True, random_state=0).split(graphs)
    parts = [test.tolist() for _, test in split]
    found = []
    for fold in range(process, FOLDS, PROCESSES):
        torch.manual_seed(fold)
        validation = (fold + 1) % FOLDS
        rest = [i for k, part in enumerate(parts) if k not in (fold, validation) for i in part]
        found.append(train(graphs, rest, parts[validation], parts[fold], epochs, fused))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument(
        "--root", type=Path, required=True, help="directory of TU datasets, each a directory of text files"
    )
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--fused", action="store_true", help="Adam's fused kernel")
    args = parser.parse_args()
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        jobs = [
            pool.submit(run_folds, process, args.dataset, args.root, args.epochs, args.fused)
            for process in range(PROCESSES)
        ]
        scores = torch.tensor([score for job in jobs for score in job.result()])
    print(
        f"PyG GINE on {args.dataset}: {100 * scores.mean():.1f} ± {100 * scores.std(correction=0):.1f} over {FOLDS} folds"
    )


if __name__ == "__main__":
    main()
