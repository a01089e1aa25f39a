"""What goes into the rows and the columns of a table: the things that vary between its cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd

from egin_dgl.reporting.many_runs.run_groups import Cell

Place: TypeAlias = tuple[tuple[str, ...], str]  # a row and a column


@dataclass(frozen=True)
class Layout:
    """Cells by row and column. A row is named by the values of `row_keys`, a column by its value of `column_key`."""

    keys: tuple[str, ...]  # the settings that vary
    row_keys: tuple[str, ...]
    column_key: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]
    places: dict[Place, Cell]  # row by row
    subject: str  # the model and the dataset where there is only one
    differing: tuple[str, ...]  # settings that were given but vary between models or datasets only

    @property
    def cells(self) -> list[Cell]:
        return list(self.places.values())

    @property
    def row_headers(self) -> list[str]:
        return [self.short(key) for key in self.row_keys]

    @property
    def column_headers(self) -> list[str]:
        if self.column_key == "dataset":
            return list(self.columns)
        return [f"{self.short(self.column_key)} {brief(value)}" for value in self.columns]

    def row_label(self, row: tuple[str, ...]) -> str:
        """A row in one line."""
        named = zip(self.row_keys, row, strict=True)
        return ", ".join(v if key == "model" else f"{self.short(key)} {brief(v)}" for key, v in named)

    def setting(self, cell: Cell) -> str:
        """The values of a cell that vary, in one line."""
        return ", ".join(f"{self.short(key)} {brief(cell.value(key))}" for key in self.keys)

    def short(self, key: str) -> str:
        """The last part of a name, where that is enough."""
        last = key.rpartition(".")[2]
        return key if sum(other.rpartition(".")[2] == last for other in self.keys) > 1 else last


def lay_out(cells: Sequence[Cell]) -> Layout:
    """Datasets go into columns; of several settings on one dataset, the last one given on the command line does."""
    names = list(dict.fromkeys(key for cell in cells for key in ("model", "dataset", *cell.settings)))
    values = pd.DataFrame([[cell.value(name) for name in names] for cell in cells], columns=names)
    words = (word for cell in cells for run in cell.runs for word in run.overrides)
    given = dict.fromkeys(word.lstrip("+~").partition("=")[0] for word in words)
    keys = varying(values, list(given))
    things = [*(["model"] if values["model"].nunique() > 1 else []), *keys]
    by_dataset = values["dataset"].nunique() > 1 or mostly_holes(values, things)
    column_key = "dataset" if by_dataset else things[-1]
    row_keys = tuple(key for key in things if key != column_key) or ("model",)
    orders = {key: ordered(values[key].unique().tolist()) for key in (*row_keys, column_key)}
    cells = sorted(cells, key=lambda cell: [order.index(cell.value(key)) for key, order in orders.items()])
    places = {(tuple(cell.value(key) for key in row_keys), cell.value(column_key)): cell for cell in cells}
    single = [values[name][0] for name in ("model", "dataset") if values[name].nunique() == 1]
    said = (*keys, "model", "dataset", "model.learn_eps")  # ε is in the name
    silent = {key: dict.fromkeys(cell.value(key) for cell in cells) for key in given if key not in said}
    return Layout(
        keys=tuple(keys),
        row_keys=row_keys,
        column_key=column_key,
        rows=tuple(dict.fromkeys(row for row, _ in places)),
        columns=tuple(orders[column_key]),
        places=places,
        subject=" on ".join(single),
        differing=tuple(f"{key} ({', '.join(found)})" for key, found in silent.items() if len(found) > 1),
    )


def mostly_holes(values: pd.DataFrame, things: Sequence[str]) -> bool:
    """Whether the last thing as columns would leave most places empty, as the values that a search draws do."""
    if len(things) < 2:
        return True
    *rows, column = things
    return 2 * len(values) <= len(values.drop_duplicates(rows)) * values[column].nunique()


def varying(values: pd.DataFrame, given: list[str]) -> list[str]:
    """Settings that vary between cells of one model on one dataset.

    Those given on the command line come first, in their order. Of the others (a momentum that comes with an
    optimizer) only those are kept that tell cells apart which the ones before leave together.
    """
    together = ["model", "dataset"]
    varies = values.groupby(together).nunique().gt(1).any()
    others = sorted(set(values.columns) - set(given), key=likely_last)
    for key in [*given, *others]:
        if varies.get(key, False) and (
            key in given or values.groupby([*together, key]).ngroups > values.groupby(together).ngroups
        ):
            together.append(key)
    return together[2:]


def likely_last(key: str) -> tuple[bool, bool, bool, str]:
    """Options of groups before single values, details of data after them, and names of classes in the end."""
    return key.rpartition(".")[2].startswith("_"), key.startswith("dataset."), "." in key, key


def ordered(values: list[str]) -> list[str]:
    """Numbers by size, all else as it is."""
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def brief(text: str) -> str:
    """A number that a search drew, to as many digits as anyone reads; the CSV has them all."""
    try:
        return f"{float(text):.4g}" if len(text) > 8 else text
    except ValueError:
        return text
