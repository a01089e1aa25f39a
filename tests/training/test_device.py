import pytest
import torch

from egin_dgl.errors import ConfigError
from egin_dgl.training.device import pick_device, why_no_cuda


def test_the_cpu_is_always_there():
    assert pick_device("cpu") == torch.device("cpu")


def test_auto_takes_a_gpu_only_if_both_libraries_can():
    expected = "cpu" if why_no_cuda(torch.device("cuda")) else "cuda"
    assert pick_device("auto").type == expected


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_missing_cuda_is_said_in_one_sentence(device):
    with pytest.raises(
        ConfigError, match=rf"device={device} was asked for, but torch \S+ (has no CUDA|finds no GPU)"
    ):
        pick_device(device)


@pytest.mark.parametrize("device", ["gpu", "tpu", "cuda:x", "meta", 3.5])
def test_a_wrong_device_names_the_valid_ones(device):
    with pytest.raises(ConfigError, match="device must be auto, cpu, cuda or cuda:0"):
        pick_device(device)
