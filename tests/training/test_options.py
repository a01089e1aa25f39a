import pytest

from egin_dgl.errors import ConfigError
from egin_dgl.training.options import TrainerOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"epochs": "abc"},
        {"batch_size": 1.5},
        {"patience": -1},
        {"fold_workers": True},
        {"clip_grad_norm": 0},
        {"clip_grad_norm": "big"},
        {"standardize": "maybe"},
        {"checkpoint_every": None},
        {"monitor_window": 0},
        {"ema_decay": 1.0},
        {"ema_decay": True},
        {"bn_statistics": "exactly"},
        {"warmup_epochs": -1},
    ],
)
def test_a_wrong_value_is_named_with_what_is_wanted(wrong):
    (name, value) = next(iter(wrong.items()))
    with pytest.raises(ConfigError, match=f"trainer.{name} must be .*, got {value!r}"):
        TrainerOptions(**wrong)


def test_a_wrong_precision_names_the_valid_ones():
    with pytest.raises(ConfigError, match="one of fp32, bf16, fp16, got 'half'"):
        TrainerOptions(precision="half")
