"""A device that this machine does not have: tensors that hold data of the CPU and claim another device.

The device has the name of torch's `meta`, the only one besides the CPU for which every build of torch can differentiate.
Operations compute on the CPU. As on a GPU, operands must be on one device, but for numbers (0-dimensional tensors); what
would make the host wait for the device is recorded.
"""

from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from egin_dgl.training.coroutine import Coroutine

DEVICE = torch.device("meta")
COPIES = ("_to_copy", "copy_")
INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_")
# Their results have sizes, or are values, that the host must wait for.
WAITS = (
    "_local_scalar_dense",
    "equal",
    "nonzero",
    "masked_select",
    "bincount",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
)


class DeviceTensor(Tensor):
    """A tensor on the emulated device."""

    @staticmethod
    def __new__(cls, held):
        return Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=DEVICE
        )

    def __init__(self, held):
        self.held = held

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, value):
        self.held = value.held

    def tolist(self):
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})

    def __repr__(self):
        return f"DeviceTensor({self.held})"


class EmulatedDevice(TorchDispatchMode):
    """Inside the block, tensors may be made on, and moved to, the emulated device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


waits: list[str] = []  # operations for which the host waited


@contextmanager
def emulated_device(monkeypatch):
    """The emulated device, which has neither autocast nor fused optimizers."""
    monkeypatch.setattr(
        "egin_dgl.training.flat_parameters.fused_if_possible", lambda make, parameters: make(list(parameters))
    )
    monkeypatch.setattr(torch, "autocast", lambda device, **options: nullcontext())
    monkeypatch.setattr("egin_dgl.models.dispatch.is_autocast", lambda batch: False)
    run = Coroutine._run

    def run_emulated(coroutine):  # a dispatch mode holds in its own thread only
        with EmulatedDevice():
            run(coroutine)

    monkeypatch.setattr(Coroutine, "_run", run_emulated)
    with EmulatedDevice():
        yield


def compute(func, args, kwargs):
    name, wrappers, on_host = func.overloadpacket.__name__, {}, []

    def unwrap(x):
        if isinstance(x, DeviceTensor):
            wrappers[id(x.held)] = x
            return x.held
        if isinstance(x, Tensor):
            on_host.append(x)
        return torch.device("cpu") if isinstance(x, torch.device) and x == DEVICE else x

    wanted = kwargs.get("device")
    host_args, host_kwargs = tree_map(unwrap, args), tree_map(unwrap, kwargs)
    if wrappers and name not in COPIES + INDEXING and any(x.ndim for x in on_host):
        raise RuntimeError(f"{func}: expected all tensors to be on the same device")
    if wrappers and is_wait(name, args, wanted, host_args, host_kwargs):
        waits.append(str(func))
    on_device = bool(wrappers) if wanted is None else wanted == DEVICE
    if name == "copy_":
        on_device = isinstance(args[0], DeviceTensor)
    found = func(*host_args, **host_kwargs)
    if name == "_to_copy" and found is host_args[0]:
        found = found.clone()

    def wrap(x):
        if not isinstance(x, Tensor) or not on_device:
            return x
        return wrappers[id(x)] if id(x) in wrappers else DeviceTensor(x)

    return tree_map(wrap, found)


def is_wait(name, args, wanted, host_args, host_kwargs) -> bool:
    if name == "_to_copy":
        return wanted is not None and wanted != DEVICE
    if name == "copy_":
        return not isinstance(args[0], DeviceTensor)
    if name == "repeat_interleave":
        return host_kwargs.get("output_size") is None
    if name in INDEXING:  # by a mask, of which as many rows are chosen as are set; or by an index on the host
        index = [(x, held) for x, held in zip(args[1], host_args[1], strict=True) if x is not None]
        return any(held.dtype == torch.bool or not isinstance(x, DeviceTensor) for x, held in index)
    return name in WAITS
