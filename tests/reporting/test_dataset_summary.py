"""The line and the hints on a dataset, and the table of an audit."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from egin_dgl.data import bonds
from egin_dgl.ewl import audit
from egin_dgl.reporting.dataset_summary import (
    audit_hints,
    audit_table,
    data_line,
    duplicates_line,
    format_bound,
    hints,
    target_table,
)


@pytest.fixture(scope="module")
def plain():
    return bonds(graphs=60)


def with_attributes(dataset, size):
    """The dataset with one continuous column of this size before the labels of its nodes."""
    generator = torch.Generator().manual_seed(0)
    column = size * torch.randn(len(dataset.node_feats), 1, generator=generator)
    dataset = dataset.with_features(
        torch.cat([column, dataset.node_feats], dim=1), node_names=("attribute0", *dataset.info.node_names)
    )
    return replace(dataset, info=replace(dataset.info, node_attributes=1))


def with_labels(dataset, labels):
    names = tuple(str(name) for name in range(int(max(labels)) + 1))
    info = replace(dataset.info, classes=len(names), class_names=names)
    return replace(dataset, info=info, labels=torch.as_tensor(labels))


def test_data_line_has_the_sizes_of_the_tensors(plain):
    line = data_line(with_attributes(plain, 1))
    sizes = plain.node_offsets.diff()
    assert line.startswith(f"bonds: 60 graphs of {sizes.min()} to {sizes.max()} nodes; ")
    assert f"{len(plain.node_feats)} nodes; {len(plain.src):,} directed edges; " in line
    assert "2 classes (smallest: alternating with 30); 3 node features (1 attribute); 2 edge features" in line


def test_no_hints_for_ordinary_data(plain):
    assert hints(plain) == hints(plain, kernel_attributes=False) == hints(with_attributes(plain, 2)) == []


def test_hint_on_attributes_of_another_scale_unless_standardized(plain):
    for size in (100.0, 0.01):
        (hint,) = hints(with_attributes(plain, size))
        assert "trainer.standardize=auto" in hint
    assert hints(with_attributes(plain, 100.0), standardized=True) == []


def test_hint_on_a_kernel_that_ignores_attributes(plain):
    data = with_attributes(plain, 100.0)
    (hint,) = hints(data, kernel_attributes=False)
    assert "ignores 1 node attribute;" in hint and "model.attributes=true" in hint
    assert hints(data, kernel_attributes=True) == []


def test_hints_on_imbalanced_and_single_classes(plain):
    skewed = with_labels(plain, [0] * 50 + [1] * 10)
    (hint,) = hints(skewed)
    assert "50 graphs to 10" in hint and "balanced" in hint
    assert hints(skewed, balanced=True) == []
    single, _ = hints(with_labels(plain, [0] * 30 + [1] * 29 + [2]))
    assert single.startswith("1 class with a single graph (2)")


def test_hint_on_constant_edge_features(plain):
    ones = torch.ones(len(plain.src), 1)
    (hint,) = hints(plain.with_features(edge_feats=ones, edge_names=("constant",)))
    assert hint.startswith("all edges have the same features")


def test_audit_hint_on_attributes_that_are_unique(plain):
    data = with_attributes(plain, 1)
    (hint,) = audit_hints(audit(data, depth=1), data, attributes=True)
    assert "--decimals" in hint and "--no-attributes" in hint
    (hint,) = audit_hints(audit(data, depth=1, attributes=False), data, attributes=False)
    assert "are not used" in hint
    assert audit_hints(audit(plain, depth=1), plain, attributes=True) == []


def test_only_a_bound_of_1_reads_100():
    assert [format_bound(value) for value in (1.0, 0.9995, 0.99996, 0.995, None)] == [
        *("100.0", "99.95", "99.996", "99.5", "")
    ]


def shown(table, width=60):
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_bounds_of_other_tasks(plain):
    graphs, values = [plain[i][0] for i in range(4)], np.array([[1.0, 2], [3, 2], [5, 2], [7, np.nan]])
    found = audit(graphs, labels=values, depth=1)
    text = shown(audit_table(found))
    assert "minimum mean rmse" in text and "min," in text and "…" not in text
    assert f"{found.level('e-wl', 1).bound:.3g}" in text
    rows = shown(target_table(found)).splitlines()
    assert rows[-1].split() == ["1", "0", "0"] and "groups have different targets" in duplicates_line(found)
    assert [format_bound(value, "rmse") for value in (0.0, 1e-9, 2.08, None)] == ["0", "1e-09", "2.08", ""]
    assert "maximum mean auroc" in shown(audit_table(audit(graphs, labels=(values > 4) * 1.0, depth=1)))


def test_audit_table_fits_60_columns(plain):
    console = Console(width=60, file=io.StringIO())
    console.print(audit_table(audit(plain, depth=3)))
    assert "…" not in console.file.getvalue()
