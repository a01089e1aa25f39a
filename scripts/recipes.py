"""Compare recipes of training by what validation says of them, never by test parts.

python scripts/recipes.py run calm small       train a recipe of docs/recipes.yaml on the grid of a size; again: goes on
python scripts/recipes.py collect              write what all such runs came to into docs/recipes.csv
python scripts/recipes.py tried small          a row a recipe
python scripts/recipes.py compare before calm  a row a dataset and model
python scripts/recipes.py apart before calm    the same at the epochs chosen, on graphs that chose them and on others
python scripts/recipes.py windows before calm  what a choice by longer or shorter windows comes to, on other graphs
python scripts/recipes.py spread before calm   how far a ten-fold mean moves with the seed alone
"""

import argparse
import subprocess
import sys
from functools import partial
from pathlib import Path

try:
    import egin_dgl.with_dgl  # noqa: F401
except ImportError as error:
    sys.exit(f"error: {error}")

import pandas as pd
import yaml

from egin_dgl.errors import EginError
from egin_dgl.files import write_text
from egin_dgl.reporting.documents.recipes import (
    COLUMNS,
    WINDOWS,
    compared,
    frame,
    outcome,
    provenance,
    spread,
    tried,
)
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "outputs" / "recipes"
KEPT = ROOT / "docs" / "recipes.csv"


def planned() -> dict:
    return yaml.safe_load((ROOT / "docs" / "recipes.yaml").read_text("utf-8"))


def words(recipe: str, size: str) -> list[str]:
    """The options of the sweep that trains a recipe."""
    study = planned()
    if recipe not in study["recipes"] or size not in study["sizes"]:
        names = ", ".join(study["recipes"]), ", ".join(study["sizes"])
        sys.exit(f"error: docs/recipes.yaml has the recipes {names[0]} and the sizes {names[1]}")
    return [*study["sizes"][size], *(f"{key}={value}" for key, value in study["recipes"][recipe].items())]


def run(recipe: str, size: str) -> None:
    """One fold a core, by joblib; what was interrupted goes on."""
    folder = RUNS / f"{recipe}-{size}"
    asked = ["-m", *words(recipe, size), "hydra/launcher=joblib", "trainer.fold_workers=1"]
    if SweepDir(folder).exists:
        asked = [f"resume={folder}"]
    else:
        asked.append(f"hydra.sweep.dir={folder}")
    sys.exit(subprocess.run([sys.executable, ROOT / "scripts" / "train.py", *asked], cwd=ROOT).returncode)


def collect() -> None:
    """Rows of recipes whose runs are not on this machine stay as they are, unless their study is no longer planned."""
    made = []
    for folder in sorted(path for path in RUNS.glob("*-*") if path.is_dir()):
        recipe, _, size = folder.name.rpartition("-")
        for one in find_runs([folder]):
            where = {"recipe": recipe, "size": size, "dataset": one.dataset, "model": one.model}
            where |= {"seed": one.seed, "made_with": made_with(RunDir(one.folder))}
            made.extend(outcome(result, **where) for _, result in sorted(one.results.items()))
    found = frame(made).round(4)
    if KEPT.exists():
        before = kept()
        before = before[before["size"].isin(planned()["sizes"])]
        new = set(zip(found["recipe"], found["size"], strict=True))
        old = [key not in new for key in zip(before["recipe"], before["size"], strict=True)]
        found = pd.concat([before[old], found], ignore_index=True)
    write_text(KEPT, found.to_csv(index=False, lineterminator="\n"))
    print(f"{len(found)} folds in {KEPT.relative_to(ROOT)}")


def made_with(run: RunDir) -> str:
    record = run.read_record()
    versions = (f"{name} {record['versions'][name].partition('+')[0]}" for name in ("torch", "dgl"))
    return f"{', '.join(versions)}, reproducible={str(record['settings']['reproducible']).lower()}"


def kept() -> pd.DataFrame:
    """A column that an earlier version did not write is empty."""
    return pd.read_csv(KEPT).reindex(columns=COLUMNS)


def show_tried(size: str) -> None:
    """In the order of the file."""
    table = tried(kept(), size)
    print(
        "| recipe | jump | validation, % | log loss | calibration error | over seeds | test beside, % |\n"
        "|---|---:|---:|---:|---:|---:|---:|"
    )
    digits = {"jump": 1, "stretch": 1, "log_loss": 3, "ece": 3, "seeds": 1, "test": 1}
    for recipe, row in table.loc[[name for name in planned()["recipes"] if name in table.index]].iterrows():
        cells = ("–" if pd.isna(row[name]) else f"{row[name]:.{count}f}" for name, count in digits.items())
        print(f"| {' | '.join([str(recipe), *cells])} |")
    print(f"\n{provenance(of_size(size, *table.index))}")


def pair(row: pd.Series, value: str, digits: int) -> str:
    return f"{row[f'{value}_first']:.{digits}f} → {row[f'{value}_second']:.{digits}f}"


def gain(row: pd.Series, value: str, digits: int) -> str:
    return f"{row[f'{value}_gain']:+.{digits}f} ± {row[f'{value}_error']:.{digits}f}".replace("-", "−")


# The columns of a table over cells: heading, what is shown of which value, and its digits.
OVER_EPOCHS = [
    ("jump", pair, "jump", 1),
    ("validation, %", pair, "stretch", 1),
    ("gain", gain, "stretch", 1),
    ("log loss", pair, "log_loss", 2),
    ("gain", gain, "log_loss", 2),
    ("calibration error", pair, "ece", 2),
    ("test beside, %", pair, "test", 1),
]
AT_THE_EPOCH = [
    ("graphs that chose it, %", pair, "own", 1),
    ("gain", gain, "own", 1),
    ("log loss", pair, "own_log_loss", 2),
    ("their best epoch, %", pair, "peak", 1),
    ("other graphs, %", pair, "apart", 1),
    ("gain", gain, "apart", 1),
    ("their log loss", pair, "apart_log_loss", 2),
    ("gain", gain, "apart_log_loss", 2),
]


def show_cells(columns: list, first: str, second: str) -> None:
    print(f"| | {' | '.join(heading for heading, *_ in columns)} |\n|---|{'---:|' * len(columns)}")
    for cell, row in with_mean(compared(kept(), first, second, "cells")).iterrows():
        shown = (show(row, value, digits) for _, show, value, digits in columns)
        print(f"| {' | '.join([', '.join(cell), *shown])} |")
    print(f"\n{provenance(of_size('cells', first, second))}")


def of_size(size: str, *recipes: str) -> pd.DataFrame:
    found = kept()
    return found[(found["size"] == size) & found["recipe"].isin(recipes)]


def show_windows(first: str, second: str) -> None:
    """Means over the cells of real sets, every cell weighing the same."""
    names = [f"apart_{window}" for window in WINDOWS]
    print(f"| other graphs, % | {' | '.join(f'window of {window}' for window in WINDOWS)} |")
    print(f"|---|{'---:|' * len(names)}")
    for recipe in (first, second):
        found = of_size("cells", recipe)
        cells = found[found["dataset"] != "bonds"].groupby(["dataset", "model"])[names].mean()
        print(f"| {recipe} | {' | '.join(f'{value:.1f}' for value in cells.mean())} |")


def with_mean(table: pd.DataFrame) -> pd.DataFrame:
    """The mean over the cells of real sets as a last row, its standard errors those of a mean of independent cells."""
    real = table[table.index.get_level_values("dataset") != "bonds"]
    errors = [name for name in real if name.endswith("_error")]
    last = real.mean()
    last[errors] = (real[errors] ** 2).sum() ** 0.5 / len(real)
    return pd.concat([table, pd.DataFrame([last], index=pd.MultiIndex.from_tuples([("real sets", "mean")]))])


def show_spread(first: str, others: list[str]) -> None:
    found = {name: spread(kept(), first, name) for name in others}
    seeds = next(iter(found.values()))["seeds"]
    print(
        f"| recipe | ten-fold mean of test accuracy, % | std over {seeds:.0f} seeds | over that of {first} |"
    )
    print("|---|---:|---:|---|")
    one = found[others[0]]
    print(f"| {first} | {one['mean_first']:.2f} | {one['std_first']:.2f} | |")
    for name, of in found.items():
        ratio = f"{of['ratio']:.3f} (95 % of bootstrap draws: {of['low']:.2f} to {of['high']:.2f})"
        print(f"| {name} | {of['mean_second']:.2f} | {of['std_second']:.2f} | {ratio} |")


COMMANDS = {
    "run": (run, ["recipe", "size"]),
    "collect": (collect, []),
    "tried": (show_tried, ["size"]),
    "compare": (partial(show_cells, OVER_EPOCHS), ["first", "second"]),
    "apart": (partial(show_cells, AT_THE_EPOCH), ["first", "second"]),
    "windows": (show_windows, ["first", "second"]),
    "spread": (show_spread, ["first", "others"]),
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
