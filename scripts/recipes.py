"""Compare training recipes on validation sets, never on test sets.

python scripts/recipes.py run combined small        train a recipe of docs/recipes.yaml on the grid of a size, or resume it
python scripts/recipes.py collect                   write the outcomes of all such runs into docs/recipes.csv
python scripts/recipes.py summary small             a row per recipe
python scripts/recipes.py compare previous default  a row per dataset and model
python scripts/recipes.py cross previous default    the same at the selected epochs, on graphs that selected them and on others
python scripts/recipes.py windows previous default  selection windows of other lengths, on graphs that did not select
python scripts/recipes.py seeds previous default    standard deviation of a ten-fold mean over training seeds
"""

import argparse
import subprocess
import sys
from functools import partial
from pathlib import Path

import pandas as pd
import yaml
from docgen.recipes import (
    WINDOWS,
    compare_recipes,
    compute_outcome,
    format_provenance,
    seed_spread,
    summarize_recipes,
    to_frame,
)

from egin_dgl.errors import EginError
from egin_dgl.files import write_text
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "outputs" / "recipes"
TABLE = ROOT / "docs" / "recipes.csv"


def load_study() -> dict:
    return yaml.safe_load((ROOT / "docs" / "recipes.yaml").read_text("utf-8"))


def sweep_overrides(recipe: str, size: str) -> list[str]:
    """The overrides of the sweep that trains a recipe."""
    study = load_study()
    if recipe not in study["recipes"] or size not in study["sizes"]:
        names = ", ".join(study["recipes"]), ", ".join(study["sizes"])
        sys.exit(f"error: docs/recipes.yaml has the recipes {names[0]} and the sizes {names[1]}")
    return [*study["sizes"][size], *(f"{key}={value}" for key, value in study["recipes"][recipe].items())]


def run(recipe: str, size: str) -> None:
    """Train one fold per core with joblib; an interrupted sweep is resumed."""
    folder = RUNS / f"{recipe}-{size}"
    if SweepDir(folder).exists:
        arguments = [f"resume={folder}"]
    else:
        arguments = ["-m", *sweep_overrides(recipe, size), "hydra/launcher=joblib", "trainer.fold_workers=1"]
        arguments.append(f"hydra.sweep.dir={folder}")
    done = subprocess.run([sys.executable, ROOT / "scripts" / "train.py", *arguments], cwd=ROOT)
    sys.exit(done.returncode)


def collect() -> None:
    """Rows of recipes without runs on this machine stay, unless their size is no longer in the study."""
    outcomes = []
    for folder in sorted(path for path in RUNS.glob("*-*") if path.is_dir()):
        recipe, _, size = folder.name.rpartition("-")
        for one in find_runs([folder]):
            keys = {"recipe": recipe, "size": size, "dataset": one.dataset, "model": one.model}
            keys |= {"seed": one.seed, "made_with": versions(RunDir(one.folder))}
            outcomes.extend(compute_outcome(result, **keys) for _, result in sorted(one.results.items()))
    table = to_frame(outcomes).round(4)
    if TABLE.exists():
        stored = pd.read_csv(TABLE)
        stored = stored[stored["size"].isin(load_study()["sizes"])]
        new = set(zip(table["recipe"], table["size"], strict=True))
        others = [key not in new for key in zip(stored["recipe"], stored["size"], strict=True)]
        table = pd.concat([stored[others], table], ignore_index=True)
    write_text(TABLE, table.to_csv(index=False, lineterminator="\n"))
    print(f"{len(table)} folds in {TABLE.relative_to(ROOT)}")


def versions(run: RunDir) -> str:
    record = run.read_record()
    packages = (f"{name} {record['versions'][name].partition('+')[0]}" for name in ("torch", "dgl"))
    return f"{', '.join(packages)}, reproducible={str(record['settings']['reproducible']).lower()}"


def load_outcomes(size: str, *recipes: str) -> pd.DataFrame:
    table = pd.read_csv(TABLE)
    return table[(table["size"] == size) & table["recipe"].isin(recipes)]


def show_summary(size: str) -> None:
    """Recipes in the order of docs/recipes.yaml."""
    names = list(load_study()["recipes"])
    table = summarize_recipes(load_outcomes(size, *names), size)
    print(
        "| recipe | fluctuation | validation, % | log loss | calibration error | over seeds | test, % |\n"
        "|---|---:|---:|---:|---:|---:|---:|"
    )
    digits = {"fluctuation": 1, "window_accuracy": 1, "window_log_loss": 3, "ece": 3, "seeds": 1, "test": 1}
    for recipe, row in table.loc[[name for name in names if name in table.index]].iterrows():
        cells = ("–" if pd.isna(row[name]) else f"{row[name]:.{count}f}" for name, count in digits.items())
        print(f"| {' | '.join([str(recipe), *cells])} |")
    print(f"\n{format_provenance(load_outcomes(size, *table.index))}")


def pair(row: pd.Series, value: str, digits: int) -> str:
    return f"{row[f'{value}_first']:.{digits}f} → {row[f'{value}_second']:.{digits}f}"


def gain(row: pd.Series, value: str, digits: int) -> str:
    return f"{row[f'{value}_gain']:+.{digits}f} ± {row[f'{value}_error']:.{digits}f}".replace("-", "−")


# Columns of a table: heading, formatter, value, digits.
CURVE_COLUMNS = [
    ("fluctuation", pair, "fluctuation", 1),
    ("validation, %", pair, "window_accuracy", 1),
    ("gain", gain, "window_accuracy", 1),
    ("log loss", pair, "window_log_loss", 2),
    ("gain", gain, "window_log_loss", 2),
    ("calibration error", pair, "ece", 2),
    ("test, %", pair, "test", 1),
]
SELECTION_COLUMNS = [
    ("selecting graphs, %", pair, "selected_accuracy", 1),
    ("gain", gain, "selected_accuracy", 1),
    ("log loss", pair, "selected_log_loss", 2),
    ("their best epoch, %", pair, "peak", 1),
    ("other graphs, %", pair, "cross_accuracy", 1),
    ("gain", gain, "cross_accuracy", 1),
    ("their log loss", pair, "cross_log_loss", 2),
    ("gain", gain, "cross_log_loss", 2),
]


def show_comparison(columns: list, first: str, second: str) -> None:
    print(f"| | {' | '.join(heading for heading, *_ in columns)} |\n|---|{'---:|' * len(columns)}")
    outcomes = load_outcomes("full", first, second)
    for cell, row in with_mean(compare_recipes(outcomes, first, second, "full")).iterrows():
        shown = (show(row, value, digits) for _, show, value, digits in columns)
        print(f"| {' | '.join([', '.join(cell), *shown])} |")
    print(f"\n{format_provenance(outcomes)}")


def show_windows(first: str, second: str) -> None:
    """Means over the real datasets and models, with equal weights."""
    names = [f"cross_accuracy_{window}" for window in WINDOWS]
    print(f"| other graphs, % | {' | '.join(f'window of {window}' for window in WINDOWS)} |")
    print(f"|---|{'---:|' * len(names)}")
    for recipe in (first, second):
        outcomes = load_outcomes("full", recipe)
        cells = outcomes[outcomes["dataset"] != "bonds"].groupby(["dataset", "model"])[names].mean()
        print(f"| {recipe} | {' | '.join(f'{value:.1f}' for value in cells.mean())} |")


def with_mean(table: pd.DataFrame) -> pd.DataFrame:
    """Add the mean over the real datasets as a last row, with the standard errors of a mean of independent rows."""
    real = table[table.index.get_level_values("dataset") != "bonds"]
    errors = [name for name in real if name.endswith("_error")]
    last = real.mean()
    last[errors] = (real[errors] ** 2).sum() ** 0.5 / len(real)
    return pd.concat([table, pd.DataFrame([last], index=pd.MultiIndex.from_tuples([("real sets", "mean")]))])


def show_seeds(first: str, others: list[str]) -> None:
    outcomes = load_outcomes("seeds", first, *others)
    found = {name: seed_spread(outcomes, first, name) for name in others}
    one = found[others[0]]
    print(
        f"| recipe | ten-fold mean of test accuracy, % | std over {one['seeds']:.0f} seeds | ratio to {first} |"
    )
    print("|---|---:|---:|---|")
    print(f"| {first} | {one['mean_first']:.2f} | {one['std_first']:.2f} | |")
    for name, spread in found.items():
        interval = f"95 % bootstrap interval {spread['low']:.2f} to {spread['high']:.2f}"
        ratio = f"{spread['ratio']:.3f} ({interval})"
        print(f"| {name} | {spread['mean_second']:.2f} | {spread['std_second']:.2f} | {ratio} |")


COMMANDS = {
    "run": (run, ["recipe", "size"]),
    "collect": (collect, []),
    "summary": (show_summary, ["size"]),
    "compare": (partial(show_comparison, CURVE_COLUMNS), ["first", "second"]),
    "cross": (partial(show_comparison, SELECTION_COLUMNS), ["first", "second"]),
    "windows": (show_windows, ["first", "second"]),
    "seeds": (show_seeds, ["first", "others"]),
}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (_, names) in COMMANDS.items():
        command = commands.add_parser(name)
        for argument in names:
            command.add_argument(argument, nargs="+" if argument == "others" else None)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = vars(parse(sys.argv[1:]))
    function, _ = COMMANDS[options.pop("command")]
    try:
        function(*options.values())
    except (EginError, OSError) as error:
        sys.exit(f"error: {error}")
