"""What goes into the rows and the columns of a table: the things that vary between its cells."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from egin_dgl.reporting.many_runs.cells import Cell

ABSENT = "–"


@dataclass(frozen=True)
class Layout:
    """Cells by row and column. A row is named by the values of `row_keys`, a column by its value of `column_key`."""

    keys: tuple[str, ...]  # the settings that vary
    row_keys: tuple[str, ...]
    column_key: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]
    places: dict[tuple[tuple[str, ...], str], Cell]
    subject: str  # the model and the dataset where there is only one
    differing: tuple[str, ...]  # settings that were given, and differ between models or datasets only

    @property
    def cells(self) -> list[Cell]:
        return [self.places[row, column] for row, column in self.filled]

    @property
    def filled(self) -> list[tuple[tuple[str, ...], str]]:
        return [(row, column) for row in self.rows for column in self.columns if (row, column) in self.places]

    @property
    def row_headers(self) -> list[str]:
        return [short(key, self.keys) for key in self.row_keys]

    @property
    def column_headers(self) -> list[str]:
        if self.column_key == "dataset":
            return list(self.columns)
        return [f"{short(self.column_key, self.keys)} {brief(value)}" for value in self.columns]

    def row_label(self, row: tuple[str, ...]) -> str:
        """A row in one line."""
        named = zip(self.row_keys, self.row_headers, row, strict=True)
        return ", ".join(
            value if key == "model" else f"{header} {brief(value)}" for key, header, value in named
        )

    def setting(self, cell: Cell) -> str:
        """The values of a cell that vary, in one line."""
        return ", ".join(f"{short(key, self.keys)} {brief(value(cell, key))}" for key in self.keys)


def lay_out(cells: Sequence[Cell]) -> Layout:
    """Datasets go into columns; of several settings on one dataset, the last one given on the command line does."""
    keys = varying(cells)
    models, datasets = distinct(cells, "model"), distinct(cells, "dataset")
    things = [*(["model"] if len(models) > 1 else []), *keys]
    column_key = "dataset" if len(datasets) > 1 or mostly_holes(cells, things) else things[-1]
    row_keys = tuple(key for key in things if key != column_key) or ("model",)
    places = {(tuple(value(cell, key) for key in row_keys), value(cell, column_key)): cell for cell in cells}
    orders = [ordered(distinct(cells, key)) for key in row_keys]
    rows = sorted(
        {row for row, _ in places}, key=lambda row: [o.index(v) for o, v in zip(orders, row, strict=True)]
    )
    subject = " on ".join(names[0] for names in (models, datasets) if len(names) == 1)
    columns = ordered(distinct(cells, column_key))
    return Layout(
        tuple(keys),
        row_keys,
        column_key,
        tuple(rows),
        tuple(columns),
        places,
        subject,
        differing(cells, keys),
    )


def mostly_holes(cells: Sequence[Cell], things: Sequence[str]) -> bool:
    """Whether the last thing as columns would leave most places empty, as the values that a search draws do."""
    if len(things) < 2:
        return True
    rows = {tuple(value(cell, key) for key in things[:-1]) for cell in cells}
    return 2 * len(cells) <= len(rows) * len(distinct(cells, things[-1]))


def varying(cells: Sequence[Cell]) -> list[str]:
    """Settings that vary between cells of one model on one dataset.

    Those given on the command line come first, in their order. Of the others (a momentum that comes with an
    optimizer) only those are kept that tell cells apart which the ones before leave together.
    """
    given = overridden(cells)
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.model, cell.dataset), []).append(cell)
    others = sorted({key for cell in cells for key in cell.settings} - set(given), key=likely_last)
    kept: list[str] = []
    for key in [*given, *others]:
        varies = any(len(distinct(group, key)) > 1 for group in groups.values())
        if varies and (key in given or resolution(cells, [*kept, key]) > resolution(cells, kept)):
            kept.append(key)
    return kept


def likely_last(key: str) -> tuple:
    """Options of groups before single values, details of data after them, and names of classes in the end."""
    return key.rpartition(".")[2].startswith("_"), key.startswith("dataset."), "." in key, key


def overridden(cells: Iterable[Cell]) -> list[str]:
    """What the runs' command lines set, each once."""
    words = (word for cell in cells for run in cell.runs for word in run.overrides)
    return list(dict.fromkeys(word.lstrip("+~").partition("=")[0] for word in words))


def resolution(cells: Iterable[Cell], keys: Sequence[str]) -> int:
    """How many cells these keys tell apart."""
    return len({(cell.model, cell.dataset, *(value(cell, key) for key in keys)) for cell in cells})


def differing(cells: Sequence[Cell], keys: Sequence[str]) -> tuple[str, ...]:
    """Settings that someone gave, with values that differ though no row or column says so."""
    given = [
        key for key in overridden(cells) if key not in keys and key != "model.learn_eps"
    ]  # ε is in the name
    return tuple(
        key
        for key in given
        if key in {k for cell in cells for k in cell.settings} and len(distinct(cells, key)) > 1
    )


def distinct(cells: Iterable[Cell], key: str) -> list[str]:
    """Values as first met."""
    return list(dict.fromkeys(value(cell, key) for cell in cells))


def ordered(values: list[str]) -> list[str]:
    """Numbers by size, all else as it is."""
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def value(cell: Cell, key: str) -> str:
    if key in ("model", "dataset"):
        return getattr(cell, key)
    return shown(cell.settings.get(key))


def shown(setting: Any) -> str:
    """A value as it is written on the command line."""
    if setting is None:
        return ABSENT
    return setting if isinstance(setting, str) else json.dumps(setting)


def brief(text: str) -> str:
    """A number that a search drew, to as many digits as anyone reads; the CSV has them all."""
    try:
        return f"{float(text):.4g}" if len(text) > 8 else text
    except ValueError:
        return text


def short(key: str, keys: Sequence[str]) -> str:
    """The last part of a name, where that is enough."""
    last = key.rpartition(".")[2]
    return key if sum(other.rpartition(".")[2] == last for other in keys) > 1 else last
