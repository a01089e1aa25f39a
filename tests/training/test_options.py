import pickle

import pytest

from egin_dgl.errors import ConfigError
from egin_dgl.training.options import TrainerOptions


@pytest.mark.parametrize(
    "invalid",
    [
        {"epochs": 0},
        {"epochs": "abc"},
        {"batch_size": 1.5},
        {"fold_workers": True},
        {"clip_grad_norm": 0},
        {"standardize": "maybe"},
        {"checkpoint_every": None},
        {"ema_decay": 1.0},
        {"precision": "half"},
    ],
)
def test_an_invalid_value_is_reported_with_the_valid_ones(invalid):
    (name, value) = next(iter(invalid.items()))
    with pytest.raises(ConfigError, match=f"trainer.{name} must be .*, got {value!r}"):
        TrainerOptions(**invalid)


def test_options_are_immutable_and_reach_workers():
    options = TrainerOptions(epochs=3, standardize="yes")
    assert pickle.loads(pickle.dumps(options)) == options and options.standardize is True
    with pytest.raises(ValueError, match="frozen"):
        options.epochs = 4
