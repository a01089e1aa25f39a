"""An assembled batch is what `dgl.batch` makes of the same graphs."""

import pytest
import torch
from graphs import dgl

from egin_dgl.data import load_tu
from egin_dgl.data.loader import GraphLoader, assemble


@pytest.fixture(scope="module")
def mutag():
    return load_tu("MUTAG")


@pytest.mark.parametrize("indices", [[0], [3, 1, 2], [187, 187, 0], list(range(188))])
def test_assemble_equals_dgl_batch(mutag, indices):
    batch = assemble(mutag, torch.tensor(indices))
    reference = dgl.batch([mutag[i][0] for i in indices])
    for mine, theirs in zip(batch.graph.edges(), reference.edges(), strict=True):
        assert torch.equal(mine, theirs)
    assert torch.equal(batch.graph.batch_num_nodes(), reference.batch_num_nodes())
    assert torch.equal(batch.graph.batch_num_edges(), reference.batch_num_edges())
    assert torch.equal(batch.node_feats, reference.ndata["feat"])
    assert torch.equal(batch.edge_feats, reference.edata["feat"])
    assert torch.equal(batch.labels, mutag.labels[indices])


def test_an_epoch_holds_every_graph_once_and_follows_its_generator(mutag):
    indices = list(range(10, 80))
    loader = GraphLoader(mutag, indices, batch_size=32)
    assert len(loader) == 3
    assert [len(batch.labels) for batch in loader] == [32, 32, 6]

    def epoch(seed):
        batches = loader.shuffled(torch.Generator().manual_seed(seed))
        return torch.cat([batch.graph.batch_num_nodes() for batch in batches])

    assert torch.equal(epoch(0), epoch(0))
    assert not torch.equal(epoch(0), epoch(1))
    sizes = mutag.node_offsets.diff()[indices]
    assert torch.equal(epoch(0).sort().values, sizes.sort().values)


def test_no_graphs_make_no_batch(mutag):
    loader = GraphLoader(mutag, [], batch_size=32)
    assert len(loader) == 0
