import pytest
import torch

from egin_dgl.layers import MLP
from egin_dgl.layers.readout import make_readout


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_shapes_and_depth(norm, depth):
    mlp = MLP(5, 7, 3, depth=depth, norm=norm)
    assert mlp(torch.randn(4, 5)).shape == (4, 3)
    assert sum(isinstance(step, torch.nn.Linear) for step in mlp) == depth


@pytest.mark.parametrize("rows", [0, 1])
def test_batch_norm_trains_on_one_row_or_none(rows):
    mlp = MLP(5, 7, 3).train()
    out = mlp(torch.randn(rows, 5))
    assert out.shape == (rows, 3)
    assert torch.isfinite(out).all()


def test_dropout_only_in_training():
    mlp = MLP(5, 64, 3, dropout=0.5, norm="none")
    x = torch.randn(4, 5)
    assert not torch.equal(mlp.train()(x), mlp(x))
    assert torch.equal(mlp.eval()(x), mlp(x))


def test_wrong_values_name_the_valid_ones():
    with pytest.raises(ValueError, match="norm must be one of batch, layer, none, got 'bacth'"):
        MLP(5, 7, 3, norm="bacth")
    with pytest.raises(ValueError, match="hidden_dim must be a positive integer, got 0"):
        MLP(5, 0, 3)
    with pytest.raises(ValueError, match="readout must be one of sum, mean, max, got 'total'"):
        make_readout("total")
