"""Which pairs models distinguish, against the exact references."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from egin_dgl.ewl.pairs import make_pairs, permute_nodes
from egin_dgl.models import EGIN, EGINC, EGINE, EGINM, GIN, GraphModel, MLPBag
from egin_dgl.training.pair_benchmark import TOLERANCE, model_results, reference_results

PAIRS = make_pairs(count=2)


def makers(*classes):
    return {cls.title: partial(cls, hidden_dim=16, num_layers=3) for cls in classes}


def rows(results, trained=False):
    """Verdicts on all pairs, by model."""
    found = {}
    for result in results:
        found.setdefault(result.model, []).append(result.trained if trained else result.untrained)
    return found


REFERENCE = rows(reference_results(PAIRS))


@pytest.fixture(scope="module")
def untrained():
    classes = (GIN, EGIN, EGINC, EGINE, EGINM, MLPBag)
    return list(model_results(PAIRS, makers(*classes), initializations=2, steps=0))


def test_rows_of_references_are_nested():
    assert list(REFERENCE) == ["1-WL", "Σ e", "E-WL", "exact"] and all(REFERENCE["exact"])
    for weak, strong in zip(list(REFERENCE)[:-1], list(REFERENCE)[1:], strict=True):
        assert all(b or not a for a, b in zip(REFERENCE[weak], REFERENCE[strong], strict=True))


def test_rows_of_models_are_those_of_their_references(untrained):
    found = rows(untrained)
    assert found["EGIN-M"] == REFERENCE["E-WL"]
    assert found["EGIN"] == found["EGIN-E"] == REFERENCE["Σ e"]
    assert found["GIN"] == REFERENCE["1-WL"]
    assert all(bound or not one for one, bound in zip(found["EGIN-C"], REFERENCE["E-WL"], strict=True))
    assert [pair.category for pair, seen in zip(PAIRS, found["MLP on bags"], strict=True) if seen] == [
        "edge counts",
        "edge counts",
    ]


def test_tolerance_lies_far_from_noise_and_from_differences(untrained):
    assert max(result.noise for result in untrained) < 1e-3 * TOLERANCE
    assert all(r.distance > 1e3 * TOLERANCE for r in untrained if r.untrained)
    assert all(r.distance < 1e-3 * TOLERANCE for r in untrained if not r.untrained)


def chosen(category):
    return [next(pair for pair in PAIRS if pair.category == category)]


def test_training_separates_what_a_model_can_distinguish_and_nothing_else(numbers):
    found = model_results(chosen("edge to neighbour"), makers(EGIN, EGINM), initializations=1, steps=60)
    assert rows(found, trained=True) == {"EGIN": [False], "EGIN-M": [True]}


def test_a_permuted_copy_is_not_distinguished(numbers):
    (pair,) = chosen("structure")
    copy = replace(pair, second=permute_nodes(pair.first, np.random.default_rng(1)))
    (result,) = model_results([copy], makers(EGINM), initializations=2, steps=30)
    assert not result.untrained and result.trained is False


class FirstNode(GraphModel):
    """Depends on the order of nodes: its verdicts are not to be relied on."""

    title = "first node"

    def __init__(self, info):
        super().__init__()
        self.linear = torch.nn.Linear(info.node_dim, info.classes)

    def forward(self, graph, node_feats, edge_feats):
        ends = graph.batch_num_nodes().cumsum(0)
        order = 1 + torch.arange(len(node_feats), dtype=node_feats.dtype).unsqueeze(1)
        return self.linear(
            torch.stack([part.sum(0) for part in (order * node_feats).tensor_split(ends)[:-1]])
        )

    embed = forward


def test_a_model_that_depends_on_the_order_of_nodes_distinguishes_nothing(numbers):
    for result in model_results(PAIRS, {"first": FirstNode}, initializations=2, steps=20):
        assert result.noise > TOLERANCE and not result.untrained and result.trained is False
