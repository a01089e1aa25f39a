"""Support vector machines on the Weisfeiler-Lehman subtree kernel, with edges or without."""

from collections.abc import Sequence
from typing import Literal

from egin_dgl.data.dataset import DatasetInfo
from egin_dgl.options import Decimals, Depth, Positive


class WLKernelSVM:
    """Counts of refinement colours at the depths 0..depth, and a machine on them; see `egin_dgl.ewl.WLKernel`.

    Not a network: it has no weights to start from, and is fitted once per penalty instead of once per epoch.

    Args:
        info: sizes of the data, which it does not need.
        method: e-wl (sees edges) or 1-wl.
        depth: rounds of refinement.
        penalties: values of C to try; a smaller one comes first, as it wins where score and loss are equal.
        kind: linear (on sparse counts) or precomputed (on the Gram matrix).
        normalize: divide by the norm of a graph's counts.
        attributes: let continuous attributes count as labels (equal vectors, equal label).
        decimals: to which they are rounded first; None: not at all.
    """

    def __init__(
        self,
        info: DatasetInfo,
        method: Literal["1-wl", "e-wl"] = "e-wl",
        depth: Depth = 5,
        penalties: Sequence[Positive] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
        kind: Literal["linear", "precomputed"] = "linear",
        normalize: bool = True,
        attributes: bool = False,
        decimals: Decimals | None = None,
    ):
        self.method, self.depth, self.kind, self.normalize = method, depth, kind, normalize
        self.attributes, self.decimals = attributes, decimals
        self.penalties = sorted(float(penalty) for penalty in penalties)
        if not self.penalties or self.penalties[0] <= 0:
            raise ValueError(f"penalties must be positive numbers, got {list(penalties)}")
        # Wrong options are reported before any fold starts.
        self.make_machine(self.penalties[0], 0)
        self.make_kernel()

    @property
    def name(self) -> str:
        return f"{'E-WL' if self.method == 'e-wl' else '1-WL'} kernel"

    def make_kernel(self):
        from egin_dgl.ewl.kernel import WLKernel

        return WLKernel(self.method, self.depth, self.normalize, self.attributes, self.decimals)

    def make_machine(self, penalty: float, seed: int):
        """The pipeline of `make_svm` without its kernel, whose counts are the same for every penalty."""
        from egin_dgl.ewl.kernel import make_svm

        return make_svm(self.kind, penalty, self.method, self.depth, seed=seed)[1:]
