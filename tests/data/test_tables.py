"""Tables of text: the same rows and the same faults, however many rows are read at a time."""

import pytest

from egin_dgl.data.readers.tables import read_pieces, read_table
from egin_dgl.errors import DataError

TEXT = 'name,x,\n"one\nand two", 1 ,0\n\nthree\n , ,\nfour,4,"1\n2"\nfive,5,2\n\n'


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_pieces_are_rows_of_the_table(table, at_once):
    """Cells are stripped, with line breaks kept in quotes; a short row is filled up; a row knows the line it begins in."""
    path = table(TEXT)
    rows = [
        (*cells, line)
        for piece in read_pieces(path, at_once)
        for *cells, line in zip(*piece.columns.values(), piece.lines.tolist(), strict=True)
    ]
    assert rows == [("one\nand two", "1", 2), ("three", "", 5), ("four", "4", 7), ("five", "5", 9)]
    assert read_table(path).lines.tolist() == [2, 5, 7, 9]


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
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
def test_a_fault_is_told_with_its_line(table, text, fault, at_once):
    with pytest.raises(DataError, match=fault):
        list(read_pieces(table(text), at_once))


def test_without_rows_the_columns_are_known(table):
    (piece,) = read_pieces(table("a;b;c\n;;\n"), 10)
    assert list(piece.columns) == ["a", "b", "c"] and len(piece) == 0
