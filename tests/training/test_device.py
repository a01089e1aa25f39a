import pytest
import torch

from egin_dgl.errors import ConfigError
from egin_dgl.training.device import fold_device, max_workers, pick_device, why_no_cuda


@pytest.fixture
def three_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)


def test_cpu_is_available():
    assert pick_device("cpu") == torch.device("cpu")


def test_auto_picks_a_gpu_if_torch_has_one():
    assert pick_device("auto").type == ("cpu" if why_no_cuda(torch.device("cuda")) else "cuda")


def test_auto_does_not_ask_dgl(three_gpus):
    """PyPI's DGL has no CUDA; graphs are edge lists then."""
    assert pick_device("auto") == torch.device("cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_missing_cuda_is_reported_with_reason(device):
    with pytest.raises(
        ConfigError, match=rf"device={device} cannot be used: torch \S+ (has no CUDA|finds no GPU)"
    ):
        pick_device(device)


def test_folds_are_dealt_to_all_gpus(three_gpus):
    every, one, cpu = (pick_device(name) for name in ("cuda", "cuda:1", "cpu"))
    assert [fold_device(every, fold).index for fold in range(5)] == [0, 1, 2, 0, 1]
    assert [fold_device(one, fold).index for fold in range(3)] == [1, 1, 1]
    assert fold_device(cpu, 4) == cpu
    assert (max_workers(every), max_workers(one), max_workers(cpu)) == (3, 1, None)
    with pytest.raises(ConfigError, match=r"device=cuda:3 cannot be used: torch sees only 3 GPU\(s\)"):
        pick_device("cuda:3")
