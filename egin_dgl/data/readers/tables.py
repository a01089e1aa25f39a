"""Delimited text tables with a header, read as strings; every row knows its line."""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from egin_dgl.data.readers.columns import NUMBER, Locate, object_array, parse_column
from egin_dgl.errors import DataError
from egin_dgl.files import regular_file

DELIMITERS = (",", ";", "\t")
GZIP_MAGIC = b"\x1f\x8b"

_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)


@dataclass(frozen=True)
class Table:
    """Rows of a table: the strings of each column, (rows,) objects, and the line number of each row."""

    path: Path
    columns: dict[str, np.ndarray]
    lines: np.ndarray
    invalid: Mapping[int, str] = field(default_factory=dict)  # rows that hold no molecule, with the reason

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, start: int, stop: int) -> "Table":
        columns = {name: values[start:stop] for name, values in self.columns.items()}
        return replace(self, columns=columns, lines=self.lines[start:stop])

    def renamed(self, names: Iterable[str]) -> "Table":
        """Columns whose names differ from given ones in case only are renamed to them, where this is unambiguous."""
        columns = dict(self.columns)
        for name in names:
            similar = [one for one in columns if one.casefold() == name.casefold()]
            if len(similar) == 1:
                columns[name] = columns.pop(similar[0])
        return replace(self, columns=columns)

    def column(self, name: str, option: str | None = None) -> np.ndarray:
        """The strings of a column; `option` is the setting that selects it, for messages."""
        if name not in self.columns:
            found = ", ".join(map(repr, self.columns)) or "none"
            hint = f"set {option}=NAME" if option else f"rename one to {name!r}"
            raise DataError(f"{self.path} has no column {name!r}, only {found}; {hint}")
        return self.columns[name]

    def filled_column(self, name: str, option: str | None = None) -> np.ndarray:
        """A column without empty cells."""
        texts = self.column(name, option)
        self.raise_if(texts == "", f"no value in column {name!r}")
        return texts

    def locate(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"

    def raise_if(self, wrong: np.ndarray, problem: str, *columns: np.ndarray) -> None:
        """Raise a DataError for the first row where `wrong` (rows,) is True, with its values in `columns`."""
        if wrong.any():
            row = int(np.argmax(wrong))
            values = [column[row] for column in columns]
            raise DataError(f"{self.locate(row)}: {problem.format(*values) if values else problem}")


def read_table(path: Path) -> Table:
    """Read a whole table."""
    return next(read_chunks(path, None))


def read_chunks(path: Path, size: int | None) -> Iterator[Table]:
    """Read a table in chunks of at most `size` rows, at least one chunk; blank lines are skipped.

    The delimiter is the one of , ; and tab that the header has most of; the file may be gzipped. Python's `csv` rather
    than pandas: pandas before 3.1 truncates a row that is too long where a chunk begins with it.
    """
    line = 1  # of the row being read
    try:
        with open_text(path) as stream:
            delimiter = max(DELIMITERS, key=stream.readline().count)
        with open_text(path) as stream:
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(reader, [])]
            if not names:
                raise DataError(f"{path} is empty; its first line must name its columns")
            if twice := [name for name in names if name and names.count(name) > 1]:
                raise DataError(f"{path}, line 1: two columns are called {twice[0]!r}")
            rows: list[list[str]] = []
            lines: list[int] = []
            is_first, line = True, reader.line_num + 1
            for row in reader:
                if len(row) > len(names):
                    raise DataError(
                        f"{path}, line {line}: {len(row)} fields where the header has {len(names)}"
                    )
                cells = [cell.strip() for cell in row]
                if any(cells):
                    rows.append(cells + [""] * (len(names) - len(cells)))
                    lines.append(line)
                line = reader.line_num + 1  # cells may contain line breaks
                if len(rows) == size:
                    yield _make_table(path, names, rows, lines)
                    rows, lines, is_first = [], [], False
            if rows or is_first:
                yield _make_table(path, names, rows, lines)
    except csv.Error as error:
        unclosed = "unexpected end" in str(error)
        reason = "a quotation mark is never closed" if unclosed else f"not a row of a table ({error})"
        raise DataError(f"{path}, line {line}: {reason}") from None


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """A text file, possibly gzipped; an error while it is read is a `DataError`."""
    try:
        with _open(path, "rt", "utf-8-sig") as stream:
            yield stream
    except UnicodeDecodeError:
        raise DataError(f"{path}{_describe_bad_byte(path)}; save the file as UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file ({error}); replace it") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def parse_strings(texts: np.ndarray, kind: str | None, locate: Locate, column: str) -> tuple[str, np.ndarray]:
    """Parse a column of strings as labels or attributes; see `parse_column`.

    Integers are parsed only where their text is canonical: 007 remains a string.
    """
    index, unique = pd.factorize(texts)
    distinct = [str(text) for text in unique]
    first = np.unique(index, return_index=True)[1]

    def locate_distinct(number: int) -> str:
        return locate(int(first[number]))

    if "" in distinct:
        raise DataError(f"{locate_distinct(distinct.index(''))}: no value in {column}")
    values: Sequence = distinct
    numeric = all(NUMBER.fullmatch(text) for text in distinct)
    if all(_INTEGER.fullmatch(text) for text in distinct) and kind != "attribute":
        if all(str(int(text)) == text for text in distinct):
            values = [int(text) for text in distinct]
    elif numeric and kind != "label":
        values = [int(text) if _INTEGER.fullmatch(text) else float(text) for text in distinct]
    elif kind != "label" and all(NUMBER.fullmatch(text.replace(",", ".")) for text in distinct):
        number = next(i for i, text in enumerate(distinct) if "," in text)
        raise DataError(
            f"{locate_distinct(number)}: {column} holds {distinct[number]!r}; write real numbers with a decimal point"
        )
    kind, parsed = parse_column(values, kind, locate_distinct, column)
    return kind, parsed[index] if len(parsed) else parsed


def _make_table(path: Path, names: list[str], rows: list[list[str]], lines: list[int]) -> Table:
    # A column without a name is the index that pandas writes by default.
    columns = {name: object_array(row[i] for row in rows) for i, name in enumerate(names) if name}
    return Table(path, columns, np.array(lines, dtype=np.int64))


def _open(path: Path, mode: str, encoding: str | None = None) -> IO:
    with open(regular_file(path), "rb") as file:
        is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    opener: Callable[..., IO] = gzip.open if is_gzip else open
    return opener(path, mode, encoding=encoding)


def _describe_bad_byte(path: Path) -> str:
    """The first byte that is not UTF-8, with its line."""
    with _open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return f", line {number}: byte {line[error.start]:#04x} is not text"
    return " is not text"
