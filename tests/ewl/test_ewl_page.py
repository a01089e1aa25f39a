"""docs/ewl.md: the example prints what the page shows, its numbers are recomputed, and no optimisation changes a colour."""

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
    """The rows of each Markdown table as lists of cells, without the two header lines."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [[[c.strip() for c in line.strip("|").split("|")] for line in t.splitlines()[2:]] for t in found]


EXAMPLE = PAGE[PAGE.index("## Five nodes") : PAGE.index("## Optimisations")]


def test_example_prints_what_the_page_shows():
    (code,) = re.findall(r"```python\n(.*?)```", EXAMPLE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert f"prints\n\n```\n{printed.getvalue()}```" in EXAMPLE


def test_numbers_of_the_example_are_recomputed():
    example = tables(EXAMPLE)
    assert len(example) == 3
    colors = np.zeros(5, dtype=np.int64)
    for depth, table in enumerate(example, start=1):
        base = 2 * (colors.max() + 1)
        assert f"below {base}" in EXAMPLE
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


def test_page_lists_the_optimisations_of_the_benchmark():
    times, reasons = tables(PAGE[PAGE.index("## Optimisations") :])
    assert [row[0] for row in times] == [*tricks.TRICKS, "with all, ms"]
    assert [row[0] for row in reasons] == [name for name in tricks.TRICKS if name != "all of these"]


@pytest.mark.parametrize("method", ["1-wl", "e-wl", "e-wl-ea"])
def test_no_optimisation_changes_a_color(method):
    for kind in ("random 2", "random 10", "torus"):
        graph, nodes, edges = tricks.make_graph(kind, 2000)
        nodes, edges = np.eye(5)[nodes.astype(int)], np.eye(30)[edges + 7]
        expected = refine(graph, method, 4, None, nodes, edges)
        for trick in tricks.TRICKS:
            with tricks.without(trick):
                found = refine(graph, method, 4, None, nodes, edges)
            same = [np.array_equal(a, b) for a, b in zip(expected.colors, found.colors, strict=True)]
            assert all(same), (kind, trick)
