"""Texts of a table → the classes of its graphs, and whether they are classes at all."""

from collections.abc import Sequence
from typing import Annotated

from egin_dgl.data.readers.columns import NUMBER
from egin_dgl.data.readers.tables import Table
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.options import wording

MISSING = ("", "nan", "na", "n/a", "null")  # in any case of letters
MANY = 20  # beyond so many classes, most graphs having one of their own is taken for an accident
SINGLE = "each graph has one class here (single-label classification)"

Class = int | str | None
OneColumn = Annotated[str, wording(f"the name of one column, as {SINGLE}")]


def class_of(text: str) -> Class:
    """Whole numbers are integers, however they are written: pandas writes 1 as 1.0 where another row has nothing."""
    if text.lower() in MISSING:
        return None
    if NUMBER.fullmatch(text) and (number := float(text)).is_integer() and abs(number) < 2**53:
        return int(number)
    return text


def class_column(table: Table, target: object, need: bool) -> list[Class] | None:
    """The classes in the column `target`; None where there is no such column and none is needed."""
    if not isinstance(target, str):
        raise ConfigError(f"dataset.target must be the name of one column, got {target}: {SINGLE}")
    if not need and target not in table.columns:
        return None
    return [class_of(text) for text in table.column(target, "dataset.target")]


def check_classes(classes: Sequence[Class], lines: Sequence[int], where: str, target: str) -> None:
    """Refuse what cannot be learnt from: classes that are missing, measured, or all different."""
    missing = [line for value, line in zip(classes, lines, strict=True) if value is None]
    if missing:
        named = f"line{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing[:5]))}"
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise DataError(f"{where}, {named}{more}: no class in {target!r}; take such rows out for training")
    texts = [value for value in classes if isinstance(value, str)]
    reals = [text for text in texts if NUMBER.fullmatch(text)]
    if reals and len(reals) == len(texts):
        line = lines[list(classes).index(reals[0])]
        raise DataError(
            f"{where}, line {line}: {target!r} holds {reals[0]}, a measured number; {SINGLE}, so make classes of it first"
        )
    count = len(set(classes))
    if count > max(MANY, len(classes) / 2):
        raise DataError(
            f"{where}: {target!r} has {count} different values in {len(classes)} rows; {SINGLE}, and most have one of their own"
        )
