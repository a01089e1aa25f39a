"""The accelerated path: the same numbers as the definitions in `layers` and `models`, in less time.

`models/dispatch.py` calls it where it applies. Removing this package costs speed and nothing else. A layer class joins by
`register`; see `fast/layers.py`.
"""

from egin_dgl.fast.accelerate import AcceleratedModel, accelerate
from egin_dgl.fast.layers import FastLayer, register

__all__ = ["AcceleratedModel", "FastLayer", "accelerate", "register"]
