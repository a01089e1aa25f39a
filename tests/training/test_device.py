import pytest
import torch

from egin_dgl.errors import ConfigError
from egin_dgl.training.device import pick_device, why_no_cuda


def test_cpu_is_available():
    assert pick_device("cpu") == torch.device("cpu")


def test_auto_picks_a_gpu_only_if_torch_and_dgl_can_use_it():
    expected = "cpu" if why_no_cuda(torch.device("cuda")) else "cuda"
    assert pick_device("auto").type == expected


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_missing_cuda_is_reported_with_reason(device):
    with pytest.raises(
        ConfigError, match=rf"device={device} cannot be used: torch \S+ (has no CUDA|finds no GPU)"
    ):
        pick_device(device)
