"""Tables of text with a header (CSV), whole or in pieces: no cell is changed, and every row knows its line."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
import pandas as pd

from egin_dgl.data.readers.columns import NUMBER, Where, as_column
from egin_dgl.errors import DataError

DELIMITERS = (",", ";", "\t")
GZIP = b"\x1f\x8b"

_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)
_COMMA = re.compile(r"[-+]?\d+,\d+", re.ASCII)


@dataclass(frozen=True)
class Table:
    """Some rows of a table: the texts of each column by name, (rows,) objects, and the line of each row."""

    path: Path
    columns: dict[str, np.ndarray]
    lines: np.ndarray

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str, option: str = "") -> np.ndarray:
        """The texts of a column; `option` is what names it in the configuration."""
        if name not in self.columns:
            there = ", ".join(map(repr, self.columns)) or "none"
            say = f": say {option}=NAME" if option else ""
            raise DataError(f"{self.path} has no column {name!r}, only {there}{say}")
        return self.columns[name]

    def where(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"

    def refuse(self, bad: np.ndarray, describe: Callable[[int], str]) -> None:
        """Raise for the first bad row."""
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{self.where(row)}: {describe(row)}")


def read_table(path: Path) -> Table:
    """All rows at once."""
    tables = list(read_pieces(path, at_once=1 << 12))
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].columns}
    return Table(path, columns, np.concatenate([table.lines for table in tables]))


def read_pieces(path: Path, at_once: int) -> Iterator[Table]:
    """So many rows at a time, at least one piece; blank lines are passed over.

    Fields are divided by , ; or tab, whichever the header has most of; a file may be gzipped. Read by Python's own `csv`, as
    pandas before 3.1 cuts a row that is too long without a word, where a piece begins with it.
    """
    try:
        with opened(path) as stream:
            delimiter = max(DELIMITERS, key=stream.readline().count)
        with opened(path) as stream:
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(reader, [])]
            if not names:
                raise DataError(f"{path} is empty; its first line must name its columns")
            if twice := [name for name in names if name and names.count(name) > 1]:
                raise DataError(f"{path}, line 1: two columns are called {twice[0]!r}")
            some, line = False, reader.line_num + 1
            while rows := list(islice(reader, at_once)):
                after = reader.line_num + 1
                piece, line = _piece(path, names, rows, line, after), after
                if len(piece):
                    some = True
                    yield piece
            if not some:
                yield _piece(path, names, [], line, line)
    except csv.Error:
        raise DataError(f"{path}{_parser_fault(path, delimiter)}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}{_not_text(path)}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file ({error}); replace it") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def opened(path: Path) -> IO[str]:
    """A file of text, gzipped or not."""
    return io.TextIOWrapper(_bytes(path), encoding="utf-8-sig")


def parse_texts(texts: np.ndarray, kind: str | None, where: Where, what: str) -> tuple[str, np.ndarray]:
    """A column of texts as labels or attributes, by what they look like or as `kind` says (see `as_column`).

    Whole numbers become integers only where writing them again gives the same texts: 007 stays a word.
    """
    which, found = pd.factorize(texts)
    distinct_texts = [str(text) for text in found]
    first = np.unique(which, return_index=True)[1]

    def place(row: int) -> str:
        return where(int(first[row]))

    if "" in distinct_texts:
        raise DataError(f"{place(distinct_texts.index(''))}: no value in {what}")
    values: Sequence = distinct_texts
    numeric = all(NUMBER.fullmatch(text) for text in distinct_texts)
    if all(_INTEGER.fullmatch(text) for text in distinct_texts) and kind != "attribute":
        if all(str(int(text)) == text for text in distinct_texts):
            values = [int(text) for text in distinct_texts]
    elif numeric and kind != "label":
        values = [int(text) if _INTEGER.fullmatch(text) else float(text) for text in distinct_texts]
    elif kind != "label" and any(map(_COMMA.fullmatch, distinct_texts)):
        row = next(row for row, text in enumerate(distinct_texts) if _COMMA.fullmatch(text))
        if all(NUMBER.fullmatch(text.replace(",", ".")) for text in distinct_texts):
            raise DataError(
                f"{place(row)}: {what} holds {distinct_texts[row]!r}; write real numbers with a point"
            )
    kind, column = as_column(values, kind, place, what)
    return kind, column[which] if len(column) else column


def _bytes(path: Path) -> BinaryIO | gzip.GzipFile:
    with open(path, "rb") as file:
        zipped = file.read(len(GZIP)) == GZIP
    return gzip.open(path) if zipped else open(path, "rb")


def _piece(path: Path, names: list[str], rows: list[list[str]], line: int, after: int) -> Table:
    """The rows that are not blank, of those from one line until another; cells may hold line breaks."""
    widths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    lines = line + np.arange(len(rows))
    if after - line > len(rows):
        breaks = np.array([sum(cell.count("\n") for cell in row) for row in rows], dtype=np.int64)
        lines += np.cumsum(breaks) - breaks
    if (long := widths > len(names)).any():
        bad = int(np.argmax(long))
        raise DataError(f"{path}, line {lines[bad]}: {widths[bad]} fields where the header has {len(names)}")
    for short in np.flatnonzero(widths < len(names)):
        rows[short] += [""] * int(len(names) - widths[short])
    filled, columns = np.zeros(len(rows), dtype=bool), {}
    for i, name in enumerate(names):
        columns[name] = column = np.empty(len(rows), dtype=object)
        column[:] = [row[i].strip() for row in rows]
        filled |= column != ""
    # A column without a name is the index that pandas writes unless told not to.
    return Table(path, {name: columns[name][filled] for name in names if name}, lines[filled])


def _parser_fault(path: Path, delimiter: str) -> str:
    """What is wrong with the first row that cannot be read, and the line that it begins in."""
    line = 1
    with opened(path) as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                line = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error):
                return f", line {line}: a quotation mark is never closed"
            return f", line {line}: not a row of a table ({error})"
    return " was changed while it was read"


def _not_text(path: Path) -> str:
    """The first line that is not UTF-8."""
    with _bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return f", line {number}: byte {line[error.start]:#04x} is not text; save the file as UTF-8"
    return " is not text; save the file as UTF-8"
