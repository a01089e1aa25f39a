"""docs/ewl.md: its code prints what it says, every number of its example is made again, and its tricks change no colour."""

import contextlib
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from egin_dgl.ewl import refine
from egin_dgl.ewl.ranking import dense_rank
from egin_dgl.ewl.rows import Rows, signature_slots

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ewl.md").read_text(encoding="utf-8")
LABEL = {"single": 0, "double": 1}

sys.path.insert(0, str(ROOT / "scripts" / "benchmarks"))
import tricks  # noqa: E402


def tables(text):
    """The rows of each Markdown table as lists of cells, without its two lines of head."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [[[c.strip() for c in line.strip("|").split("|")] for line in t.splitlines()[2:]] for t in found]


def test_the_code_prints_what_the_page_shows():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert f"prints\n\n```\n{printed.getvalue()}```" in PAGE


def test_every_number_of_the_example_is_made_again():
    example = tables(PAGE[PAGE.index("## Five nodes") : PAGE.index("## What each trick")])
    assert len(example) == 3
    colors = np.zeros(5, dtype=np.int64)
    for depth, table in enumerate(example, start=1):
        base = 2 * (colors.max() + 1)
        assert f"below {base}" in PAGE
        neighbors = [[part.split() for part in row[1].split(", ")] for row in table]
        codes = [sorted(2 * int(colors[int(j)]) + LABEL[kind] for j, kind in seen) for seen in neighbors]
        keys = [int(c) * base**2 + a * base + b for c, (a, b) in zip(colors, codes, strict=True)]
        rows, flat = Rows.of_lengths(np.full(5, 2)), np.array(codes).ravel()
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


def test_the_page_lists_the_tricks_that_can_be_switched_off():
    worth, reasons = tables(PAGE[PAGE.index("## What each trick") :])
    assert [row[0] for row in worth] == [*tricks.TRICKS, "with all, ms"]
    assert [row[0] for row in reasons] == [name for name in tricks.TRICKS if name != "all of these"]


@pytest.mark.parametrize("method", ["1-wl", "e-wl", "e-wl-ea"])
@pytest.mark.parametrize("trick", tricks.TRICKS)
def test_no_trick_changes_a_color(trick, method):
    for kind in ("random 2", "random 10", "torus"):
        graph, nodes, edges = tricks.make_graph(kind, 2000)
        nodes, edges = np.eye(5)[nodes.astype(int)], np.eye(30)[edges + 7]
        expected = refine(graph, method, 4, None, nodes, edges)
        with tricks.without(trick):
            found = refine(graph, method, 4, None, nodes, edges)
        assert all(np.array_equal(a, b) for a, b in zip(expected.colors, found.colors, strict=True))
