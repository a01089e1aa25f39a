"""Compare recipes of training by what validation says of them, never by test parts.

python scripts/recipes.py run calm small     # train one recipe of docs/recipes.yaml; again: goes on
python scripts/recipes.py table small        # all recipes that have finished runs, side by side
"""

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from egin_dgl.reporting.runs import find_runs
from egin_dgl.training.history import History, best_on_validation, with_choice

ROOT = Path(__file__).resolve().parent.parent
TRIED = ROOT / "docs" / "recipes.yaml"
FROM_EPOCH = 10  # jumps are counted from the step to the next epoch on


def folder_of(name: str, size: str) -> Path:
    return ROOT / "outputs" / "recipes" / f"{name}-{size}"


def command(name: str, size: str) -> list[str]:
    """The sweep that trains a recipe."""
    tried = yaml.safe_load(TRIED.read_text("utf-8"))
    options = [f"{key}={value}" for key, value in tried["recipes"][name].items()]
    return ["scripts/train.py", "-m", *tried["sizes"][size], *options]


def run(name: str, size: str) -> int:
    folder = folder_of(name, size)
    known = (folder / "sweep.json").exists()
    words = ["scripts/train.py", f"resume={folder}"] if known else command(name, size)
    words += [] if known else ["trainer.workers=1", "hydra/launcher=joblib", f"hydra.sweep.dir={folder}"]
    return subprocess.run([sys.executable, *words], cwd=ROOT).returncode


def measure(histories: Sequence[History], window: int) -> dict[str, np.ndarray]:
    """A value a fold: jumps of validation accuracy in points, and what stands at the epoch chosen by a window."""
    found = defaultdict(list)
    for history in histories:
        again: History = []
        for record in history:
            again.append(with_choice(again, record, window))
        best = best_on_validation(again)
        accuracies = np.array([record.val_accuracy for record in history])
        found["jump"].append(100 * np.abs(np.diff(accuracies))[FROM_EPOCH - 1 :].mean())
        found["val_accuracy"].append(100 * best.val_accuracy)
        found["val_stretch"].append(100 * best.choice_score)
        found["val_loss"].append(best.val_loss)
        found["test_accuracy"].append(100 * best.test_accuracy)
    return {key: np.array(values) for key, values in found.items()}


def cells(name: str, size: str) -> dict[tuple[str, str], dict[tuple[int, int], History]]:
    """The histories of a recipe by dataset and model, each by seed and fold."""
    found: dict[tuple[str, str], dict[tuple[int, int], History]] = defaultdict(dict)
    for one in find_runs([folder_of(name, size)]):
        for fold, result in one.results.items():
            found[one.dataset, one.model][one.seed, fold] = result.history
    return dict(sorted(found.items()))


def rows(size: str, window: int = 10) -> list[list[str]]:
    """A row a recipe and cell, every recipe judged by the same window."""
    table = []
    for name in yaml.safe_load(TRIED.read_text("utf-8"))["recipes"]:
        if not folder_of(name, size).is_dir():
            continue
        for (dataset, model), histories in cells(name, size).items():
            found = measure(list(histories.values()), window)
            n = len(histories)
            seeds = defaultdict(list)
            for (seed, _), value in zip(histories, found["val_stretch"], strict=True):
                seeds[seed].append(value)
            spread = np.std([np.mean(values) for values in seeds.values()])
            error = found["val_stretch"].std() / max(1, n - 1) ** 0.5
            table.append(
                [name, dataset, model, str(n), f"{found['jump'].mean():.1f}"]
                + [f"{found['val_stretch'].mean():.1f} ± {error:.1f}", f"{found['val_accuracy'].mean():.1f}"]
                + [f"{found['val_loss'].mean():.3f}", f"{spread:.1f}", f"{found['test_accuracy'].mean():.1f}"]
            )
    return table


def spread(first: str, second: str, draws: int = 10_000) -> str:
    """How far the ten-fold mean of `selected` moves with the seed, of two recipes, and the ratio with its interval."""
    means = []
    for name in (first, second):
        ((_, histories),) = cells(name, "seeds").items()
        by_seed = defaultdict(list)
        for (seed, _), history in histories.items():
            by_seed[seed].append(100 * best_on_validation(history).test_accuracy)
        means.append(np.array([np.mean(values) for values in by_seed.values()]))
    rng = np.random.default_rng(0)
    drawn = [rng.choice(values, (draws, len(values))).std(axis=1, ddof=1) for values in means]
    low, high = np.percentile(drawn[1] / drawn[0], [2.5, 97.5])
    stds = [values.std(ddof=1) for values in means]
    told = [
        f"{name}: {values.mean():.2f} ± {std:.2f} over {len(values)} seeds"
        for name, values, std in zip((first, second), means, stds, strict=True)
    ]
    return (
        "; ".join(told) + f"; ratio {stds[1] / stds[0]:.2f}, 95 % of bootstrap draws {low:.2f} to {high:.2f}"
    )


HEADER = [
    "recipe",
    "dataset",
    "model",
    "folds",
    "jump",
    "validation",
    "at epoch",
    "log loss",
    "seeds",
    "test",
]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("run", help="train a recipe, or go on with it")
    one.add_argument("name")
    one.add_argument("size")
    many = commands.add_parser("table", help="compare the recipes that were trained")
    many.add_argument("size")
    two = commands.add_parser("spread", help="compare how far two recipes move with the seed")
    two.add_argument("first")
    two.add_argument("second")
    arguments = parser.parse_args()
    if arguments.what == "run":
        sys.exit(run(arguments.name, arguments.size))
    if arguments.what == "spread":
        sys.exit(print(spread(arguments.first, arguments.second)))
    for row in [HEADER, ["---"] * len(HEADER), *rows(arguments.size)]:
        print("| " + " | ".join(row) + " |")
