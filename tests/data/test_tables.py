"""Delimited tables: the same rows and errors for every chunk size."""

import pytest

from egin_dgl.data.readers.tables import read_chunks, read_table
from egin_dgl.errors import DataError

TEXT = 'name,x,\n"one\nand two", 1 ,0\n\nthree\n , ,\nfour,4,"1\n2"\nfive,5,2\n\n'


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("size", [1, 3, None])
def test_chunks_are_rows_of_the_table(table, size):
    path = table(TEXT)
    rows = [
        (*cells, line)
        for chunk in read_chunks(path, size)
        for *cells, line in zip(*chunk.columns.values(), chunk.lines.tolist(), strict=True)
    ]
    assert rows == [("one\nand two", "1", 2), ("three", "", 5), ("four", "4", 7), ("five", "5", 9)]
    assert read_table(path).lines.tolist() == [2, 5, 7, 9]


@pytest.mark.parametrize(
    ("text", "fault"),
    {
        "a,b\n1,2,3\n4,5,6\n": "line 2: 3 fields where the header has 2",
        "a,b\n1,2\n3,4,5\n": "line 3: 3 fields where the header has 2",
        'a,b\n\n"1\n",2\n\n3,4,\n': "line 6: 3 fields where the header has 2",
        'a,b\n1,"2\n3"\n\n4,"5\n6\n': "line 5: a quotation mark is never closed",
        'a,b\n1,2\n3,"4"5\n': "line 3: not a row of a table",
        "\na,b\n": "is empty; its first line must name its columns",
    }.items(),
)
def test_errors_name_the_line(table, text, fault):
    with pytest.raises(DataError, match=fault):
        list(read_chunks(table(text), 2))


def test_table_without_rows_has_columns(table):
    (chunk,) = read_chunks(table("a;b;c\n;;\n"), 10)
    assert list(chunk.columns) == ["a", "b", "c"] and len(chunk) == 0
