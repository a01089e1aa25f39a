"""Tables of text with a header (CSV), whole or in pieces: no cell is changed, and every row knows its line."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
import pandas as pd

from egin_dgl.data.columns import NUMBER, Where, as_column
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
    tables = list(read_pieces(path, at_once=1 << 20))
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].columns}
    return Table(path, columns, np.concatenate([table.lines for table in tables]))


def read_pieces(path: Path, at_once: int) -> Iterator[Table]:
    """So many rows at a time, at least one piece; blank lines are passed over.

    Fields are divided by , ; or tab, whichever the header has most of; a file may be gzipped.
    """
    try:
        with opened(path) as stream:
            delimiter = max(DELIMITERS, key=stream.readline().count)
        with opened(path) as stream:
            reader = pd.read_csv(
                stream,
                sep=delimiter,
                header=None,  # else a row longer than the header would be read as one with an index
                dtype=str,
                na_filter=False,
                skip_blank_lines=False,
                iterator=True,
            )
            names = [str(name).strip() for name in reader.get_chunk(1).iloc[0]]
            if twice := [name for name in names if name and names.count(name) > 1]:
                raise DataError(f"{path}, line 1: two columns are called {twice[0]!r}")
            line, some = 2, False
            while True:
                try:
                    frame = reader.get_chunk(at_once)
                except StopIteration:
                    break
                table, line = _piece(path, names, frame, line)
                if len(table):
                    some = True
                    yield table
            if not some:
                # A column without a name is the index that pandas writes unless told not to.
                yield Table(
                    path, {name: np.empty(0, dtype=object) for name in names if name}, np.empty(0, dtype=int)
                )
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty; its first line must name its columns") from None
    except pd.errors.ParserError as error:
        raise DataError(f"{path}{_parser_fault(str(error))}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}{_not_text(path)}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file ({error}); replace it") from None
    except csv.Error as error:
        raise DataError(f"{path} is not a table ({error})") from None
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


def _piece(path: Path, names: list[str], frame: pd.DataFrame, line: int) -> tuple[Table, int]:
    """The rows of a frame, and the line after them; cells may hold line breaks."""
    cells = [[text.strip() for text in frame[i].to_numpy(dtype=object)] for i in frame]
    breaks = np.zeros(len(frame), dtype=np.int64)
    for i in frame:
        breaks += np.array([text.count("\n") for text in frame[i].to_numpy(dtype=object)], dtype=np.int64)
    lines = line + np.arange(len(frame)) + np.cumsum(breaks) - breaks
    filled = np.zeros(len(frame), dtype=bool)
    columns = {}
    for name, texts in zip(names, cells, strict=True):
        column = np.empty(len(frame), dtype=object)
        column[:] = texts
        filled |= column != ""
        columns[name] = column
    after = line + len(frame) + int(breaks.sum())
    return Table(path, {name: columns[name][filled] for name in names if name}, lines[filled]), after


def _parser_fault(message: str) -> str:
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        expected, line, saw = found.groups()
        return f", line {line}: {saw} fields where the header has {expected}"
    if found := re.search(r"EOF inside string starting at row (\d+)", message):
        return f", line {int(found[1]) + 1}: a quotation mark is never closed"
    return f" is not a table ({message.strip()})"


def _not_text(path: Path) -> str:
    """The first line that is not UTF-8."""
    with _bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return f", line {number}: byte {line[error.start]:#04x} is not text; save the file as UTF-8"
    return " is not text; save the file as UTF-8"
