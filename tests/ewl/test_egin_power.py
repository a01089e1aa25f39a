"""EGIN against E-WL: what an untrained network of enough width tells apart, in float64, on real and made graphs."""

import numpy as np
import pytest
import torch

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.loader import assemble
from egin_dgl.errors import DataError
from egin_dgl.ewl import refine
from egin_dgl.models import EGIN, EGINC, EGINE

DEPTH = 3


def distances(data, make):
    """How far apart the embeddings of two graphs are, for pairs that E-WL does not tell apart and for those it does."""
    classes = refine(data, depth=DEPTH).graph_classes()
    torch.manual_seed(0)
    # A learnt ε is almost surely not 0; it tells a node from its neighbours where edges do not.
    network = make(data.info, hidden_dim=64, layers=DEPTH, learn_eps=True, norm="none").double().eval()
    for conv in network.convs:
        torch.nn.init.constant_(conv.eps, 0.123456789)
    batch = assemble(data, torch.arange(len(data)))
    with torch.no_grad():
        vectors = network.embed(batch.graph, batch.node_feats.double(), batch.edge_feats.double()).numpy()
    vectors /= np.abs(vectors).max(axis=0).clip(1e-12)
    distance = np.abs(vectors[:, None] - vectors[None]).max(axis=-1)
    same = classes[:, None] == classes[None]
    return distance[same], distance[~same]


@pytest.mark.parametrize("name", ["MUTAG", "Cuneiform", "PTC_MR", "PTC_FM"])
@pytest.mark.parametrize("make", [EGIN, EGINE])
def test_on_real_sets_embeddings_are_equal_exactly_where_colors_are(name, make):
    try:
        data = load_tu(name, url=None)
    except DataError:
        pytest.skip(f"{name} is not here: set EGIN_DATA_ROOT to a folder that has it")
    alike, told_apart = distances(data, make)
    assert alike.max() < 1e-10
    assert told_apart.min() > 1e-6


@pytest.mark.parametrize("make", [EGIN, EGINC, EGINE])
def test_no_variant_ever_sees_more_than_e_wl(make):
    alike, _ = distances(bonds(graphs=60), make)
    assert alike.max() < 1e-10


def test_a_sum_of_concatenations_forgets_which_edge_led_to_which_neighbor():
    """Σ (h_j, e_ij) = (Σ h_j, Σ e_ij): where single and double bond swap their neighbours, EGIN and EGIN-E see
    nothing, though E-WL does; outer products keep the pairs, so EGIN-C does too."""
    data = bonds(graphs=60)
    for make in (EGIN, EGINE):
        assert distances(data, make)[1].min() < 1e-12
    assert distances(data, EGINC)[1].min() > 1e-6
