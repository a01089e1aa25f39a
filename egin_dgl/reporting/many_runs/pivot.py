"""Rows and columns of a table, chosen from the settings that vary between its groups of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd

from egin_dgl.reporting.many_runs.run_groups import RunGroup

Position: TypeAlias = tuple[tuple[str, ...], str]  # row and column


@dataclass(frozen=True)
class Pivot:
    """Groups by row and column: a row has the values of `row_keys`, a column its value of `column_key`."""

    keys: tuple[str, ...]  # the settings that vary
    row_keys: tuple[str, ...]
    column_key: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]
    positions: dict[Position, RunGroup]  # row by row
    subject: str  # model and dataset, if there is only one
    differing: tuple[str, ...]  # settings of the command lines that vary only between models or datasets

    @property
    def groups(self) -> list[RunGroup]:
        return list(self.positions.values())

    @property
    def row_headers(self) -> list[str]:
        return [self.short_name(key) for key in self.row_keys]

    @property
    def column_headers(self) -> list[str]:
        if self.column_key == "dataset":
            return list(self.columns)
        return [self.label(self.column_key, value) for value in self.columns]

    def row_label(self, row: tuple[str, ...]) -> str:
        pairs = zip(self.row_keys, row, strict=True)
        return ", ".join(value if key == "model" else self.label(key, value) for key, value in pairs)

    def setting(self, group: RunGroup) -> str:
        """The varying settings of a group in one line."""
        return ", ".join(self.label(key, group.value(key)) for key in self.keys)

    def label(self, key: str, value: str) -> str:
        return f"{self.short_name(key)} {shorten(value)}"

    def short_name(self, key: str) -> str:
        """The last part of a dotted name, if it is unique."""
        last = key.rpartition(".")[2]
        return key if sum(other.rpartition(".")[2] == last for other in self.keys) > 1 else last


def pivot_groups(groups: Sequence[RunGroup]) -> Pivot:
    """Put datasets into columns; with one dataset, the last setting of the command line that varies."""
    names = list(dict.fromkeys(key for group in groups for key in ("model", "dataset", *group.settings)))
    values = pd.DataFrame([[group.value(name) for name in names] for group in groups], columns=names)
    overrides = (text for group in groups for run in group.runs for text in run.overrides)
    given = dict.fromkeys(text.lstrip("+~").partition("=")[0] for text in overrides)
    keys = varying_settings(values, list(given))
    row_keys = [*(["model"] if values["model"].nunique() > 1 else []), *keys]
    column_key = "dataset"
    if values["dataset"].nunique() == 1 and not is_sparse(values, row_keys):
        column_key = row_keys.pop()
    row_keys = row_keys or ["model"]
    orders = {key: sort_numbers(values[key].unique().tolist()) for key in (*row_keys, column_key)}
    groups = sorted(
        groups, key=lambda group: [order.index(group.value(key)) for key, order in orders.items()]
    )
    positions = {(tuple(map(group.value, row_keys)), group.value(column_key)): group for group in groups}
    single = [values[name][0] for name in ("model", "dataset") if values[name].nunique() == 1]
    shown = (*keys, "model", "dataset", "model.learn_eps")  # ε is in the name of the model
    hidden = {key: dict.fromkeys(group.value(key) for group in groups) for key in given if key not in shown}
    return Pivot(
        keys=tuple(keys),
        row_keys=tuple(row_keys),
        column_key=column_key,
        rows=tuple(dict.fromkeys(row for row, _ in positions)),
        columns=tuple(orders[column_key]),
        positions=positions,
        subject=" on ".join(single),
        differing=tuple(f"{key} ({', '.join(found)})" for key, found in hidden.items() if len(found) > 1),
    )


def is_sparse(values: pd.DataFrame, keys: Sequence[str]) -> bool:
    """Whether the last key as columns would leave most cells empty, as the values of a random search do."""
    if len(keys) < 2:
        return True
    *rows, column = keys
    return 2 * len(values) <= len(values.drop_duplicates(rows)) * values[column].nunique()


def varying_settings(values: pd.DataFrame, given: list[str]) -> list[str]:
    """Settings that vary between groups of one model on one dataset, those of the command line first.

    Of the others (a momentum that comes with an optimizer) only those are needed that distinguish groups which the
    settings before them do not.
    """
    keys = ["model", "dataset"]
    varies = values.groupby(keys).nunique().gt(1).any()
    # Options of groups before single values, details of the data after them, names of classes last.
    others = sorted(
        set(values.columns) - set(given),
        key=lambda key: (key.rpartition(".")[2].startswith("_"), key.startswith("dataset."), "." in key, key),
    )
    for key in [*given, *others]:
        if varies.get(key, False) and (
            key in given or values.groupby([*keys, key]).ngroups > values.groupby(keys).ngroups
        ):
            keys.append(key)
    return keys[2:]


def sort_numbers(values: list[str]) -> list[str]:
    """Numbers in ascending order; other values keep their order."""
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def shorten(text: str) -> str:
    """A long number with four significant digits; the CSV has them all."""
    try:
        return f"{float(text):.4g}" if len(text) > 8 else text
    except ValueError:
        return text
