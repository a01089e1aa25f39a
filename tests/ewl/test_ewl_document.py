"""docs/ewl.md: its code prints what it shows, and every number of its example is correct."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

from egin_dgl.ewl import refine
from egin_dgl.ewl.ranking import Rows, dense_rank, signature_slots

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ewl.md").read_text(encoding="utf-8")
LABEL = {"single": 0, "double": 1}


def tables(text):
    """The rows of each Markdown table as lists of cells, without the header."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [[[c.strip() for c in line.strip("|").split("|")] for line in t.splitlines()[2:]] for t in found]


EXAMPLE = PAGE[PAGE.index("## Five nodes") : PAGE.index("## Speed")]


def test_code_prints_what_the_document_shows():
    (code,) = re.findall(r"```python\n(.*?)```", EXAMPLE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert f"prints\n\n```\n{printed.getvalue()}```" in EXAMPLE


def test_numbers_of_the_example():
    example = tables(EXAMPLE)
    assert len(example) == 3
    colors = np.zeros(5, dtype=np.int64)
    for depth, table in enumerate(example, start=1):
        base = 2 * (colors.max() + 1)
        assert f"below {base}" in EXAMPLE
        neighbors = [[part.split() for part in row[1].split(", ")] for row in table]
        codes = [sorted(2 * int(colors[int(j)]) + LABEL[kind] for j, kind in seen) for seen in neighbors]
        keys = [int(c) * base**2 + a * base + b for c, (a, b) in zip(colors, codes, strict=True)]
        rows, flat = Rows.from_lengths(np.full(5, 2)), np.array(codes).ravel()
        slots = signature_slots(colors, int(colors.max()) + 1, rows, flat, int(base))
        assert slots.tolist() == [sum(other < key for other in keys) for key in keys]
        after, _ = dense_rank(slots, 5)
        for i, row in enumerate(table):
            assert row[0] == str(i) and row[2:4] == [str(colors[i]), f"{codes[i][0]}, {codes[i][1]}"]
            assert row[4:] == [str(keys[i]), str(slots[i]), str(after[i])]
        ends = [(int(j), i, LABEL[kind]) for i, seen in enumerate(neighbors) for j, kind in seen]
        src, dst, labels = map(list, zip(*ends, strict=True))
        assert refine((src, dst, 5), depth=depth, edge_labels=labels).colors[depth].tolist() == after.tolist()
        colors = after
