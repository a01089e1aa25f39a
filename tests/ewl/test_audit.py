"""The audit of a dataset: known values on real sets, and duplicates that are really there."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_graphs import build

from egin_dgl.data import bonds
from egin_dgl.errors import DataError
from egin_dgl.ewl import as_graph_set, audit, draw_refinement, duplicate_groups, refine
from egin_dgl.ewl.refinement import refine_at_most


@pytest.mark.parametrize(
    ("name", "key", "plain", "edged"),
    [
        ("MUTAG", "graphs", 175, 188),
        ("ER_MD", "bound", 0.865, 1.000),
        ("COX2_MD", "bound", 0.901, 1.000),
        ("PTC_MR", "bound", 0.991, 0.994),
    ],
)
def test_known_values(name, key, plain, edged, dataset):
    found = audit(dataset(name))
    assert round(getattr(found.level("1-wl", 5), key), 3) == plain
    assert round(getattr(found.level("e-wl", 5), key), 3) == edged
    for method in ("1-wl", "e-wl"):
        levels = [found.level(method, depth) for depth in range(6)]
        assert all(
            a.colors <= b.colors and a.graphs <= b.graphs for a, b in zip(levels, levels[1:], strict=False)
        )
        assert all(a.bound <= b.bound for a, b in zip(levels, levels[1:], strict=False))


def test_bonds_need_edges():
    found = audit(bonds(graphs=80), depth=3)
    assert found.level("1-wl", 3).bound == 0.5 and found.level("e-wl", 3).bound == 1.0
    assert found.duplicates and not found.opposite


def test_duplicates_opposite_labels_and_leaks():
    triangle = build(3, [(0, 1), (1, 2), (2, 0)], [0, 0, 1], [0, 0, 1])
    turned = build(3, [(1, 2), (2, 0), (0, 1)], [1, 0, 0], [0, 1, 0])
    other = build(3, [(0, 1), (1, 2), (2, 0)], [0, 0, 1], [1, 0, 0])
    found = audit(
        [triangle, other, turned, other, triangle],
        labels=[0, 1, 1, 1, 0],
        folds=[[0, 4], [1, 3], [2]],
        depth=2,
    )
    assert found.duplicates == ((0, 2, 4), (1, 3)) and found.opposite == ((0, 2, 4),)
    assert list(found.leaks) == [((0, 0), (2, 2), (4, 0))] and found.leaking_graphs == 3
    assert found.level("e-wl", 2).bound == pytest.approx(4 / 5)
    record = json.loads(json.dumps(found.to_dict()))
    assert record["duplicates"] == [[0, 2, 4], [1, 3]] and record["leaks"] == [[[0, 0], [2, 2], [4, 0]]]
    assert duplicate_groups([triangle, other, turned, other, triangle]).tolist() == [0, 1, 0, 1, 0]


def test_equal_colors_are_not_duplicates():
    ring = build(6, [(k, (k + 1) % 6) for k in range(6)], [0] * 6, [0] * 6)
    triangles = build(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)], [0] * 6, [0] * 6)
    calls = []
    groups = duplicate_groups([ring, triangles, ring], progress=lambda done, most: calls.append((done, most)))
    assert groups.tolist() == [0, 1, 0] and calls == [(1, 2), (2, 2)]


def test_duplicates_of_a_real_set(dataset):
    data = dataset("PTC_MR")
    found = audit(data, depth=1)
    assert (len(found.duplicates), len(found.opposite)) == (6, 2)
    groups = duplicate_groups(data)
    assert groups.dtype == np.int64 and groups.shape == (344,) and groups.max() + 1 == 337
    assert duplicate_groups(dataset("MUTAG")).tolist() == list(range(188))


def test_unknown_labels_do_not_count():
    data = bonds(graphs=8)
    half = replace(data, labels=torch.tensor([0, -1] * 4))
    assert audit(half, depth=1).level("1-wl", 1).bound == 1.0
    unknown = replace(data, labels=torch.full((8,), -1))
    assert audit(unknown, depth=1).level("1-wl", 1).bound is None
    with pytest.raises(DataError, match="fold 0 has a graph outside"):
        audit(data, depth=1, folds=[[99]])
    with pytest.raises(DataError, match="one class, or one row of targets, for each"):
        audit(data, depth=1, labels=[1, 2])


def test_any_depth_is_cheap(tmp_path):
    data = bonds(graphs=20)
    shallow, deep = audit(data, depth=30), audit(data, depth=10**30)
    assert set(deep.levels) <= set(shallow.levels)  # which repeats the stable ones
    for method in ("1-wl", "e-wl"):
        last = [level for level in deep.levels if level.method == method][-1]
        assert last.depth < 30 and replace(last, depth=30) == shallow.level(method, 30)
    path = as_graph_set((list(range(299)), list(range(1, 300)), 300))
    assert refine_at_most(path, "e-wl", 120).stable_depth is None
    assert refine_at_most(path, "e-wl", 10**9).stable_depth == refine(path).stable_depth > 200
    assert draw_refinement(data[0][0], tmp_path / "picture.png", depth=10**9).depth < 30
