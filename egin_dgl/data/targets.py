"""Strings of a table → the class of each graph, with checks that they are classes."""

from collections.abc import Sequence
from typing import Annotated

from egin_dgl.data.readers.columns import NUMBER
from egin_dgl.data.readers.tables import Table
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.ranges import Such

MISSING = ("", "nan", "na", "n/a", "null")  # case-insensitive
MANY_CLASSES = 20  # above it, more classes than half the graphs are an error
SINGLE = "each graph has one class here (single-label classification)"

Class = int | str | None
OneColumn = Annotated[str, Such(f"the name of one column, as {SINGLE}", bool)]


def parse_class(text: str) -> Class:
    """A class as an integer or a string; None where missing. pandas writes 1 as 1.0 in a column with gaps."""
    if text.lower() in MISSING:
        return None
    if NUMBER.fullmatch(text) and (number := float(text)).is_integer() and abs(number) < 2**53:
        return int(number)
    return text


def read_classes(table: Table, target: object, required: bool) -> list[Class] | None:
    """The classes in the column `target`; None if there is no such column and it is not required."""
    if not isinstance(target, str):
        raise ConfigError(f"dataset.target must be the name of one column, got {target}: {SINGLE}")
    if not required and target not in table.columns:
        return None
    return [parse_class(text) for text in table.column(target, "dataset.target")]


def check_classes(classes: Sequence[Class], lines: Sequence[int], path: str, target: str) -> None:
    """Raise if classes are missing, numeric, or nearly all different."""
    missing = [line for value, line in zip(classes, lines, strict=True) if value is None]
    if missing:
        shown = f"line{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing[:5]))}"
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise DataError(f"{path}, {shown}{more}: no class in {target!r}; remove such rows for training")
    texts = [value for value in classes if isinstance(value, str)]
    reals = [text for text in texts if NUMBER.fullmatch(text)]
    if reals and len(reals) == len(texts):
        line = lines[list(classes).index(reals[0])]
        raise DataError(
            f"{path}, line {line}: {target!r} holds {reals[0]}, a numeric target; {SINGLE}, so convert it to classes first"
        )
    count = len(set(classes))
    if count > max(MANY_CLASSES, len(classes) / 2):
        raise DataError(
            f"{path}: {target!r} has {count} different values in {len(classes)} rows, which is not a class column; {SINGLE}"
        )
