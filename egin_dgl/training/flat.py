"""All parameters of a model in one tensor, so that an optimizer has one update to make in place of dozens."""

import torch
from torch import Tensor, nn


class FlatParameters:
    """The model's parameters become views of `flat`, which the optimizer is given in their place.

    Call `gather` after `backward` and before the optimizer's step.
    """

    def __init__(self, model: nn.Module):
        self.parts = [parameter for parameter in model.parameters() if parameter.requires_grad]
        values = torch.cat([part.detach().reshape(-1) for part in self.parts])
        self.flat = nn.Parameter(values)
        for part, view in zip(self.parts, self.views(self.flat.detach()), strict=True):
            part.data = view

    def views(self, flat: Tensor) -> list[Tensor]:
        """A flat tensor cut up as the parameters are."""
        pieces = flat.split([part.numel() for part in self.parts])
        return [piece.view_as(part) for piece, part in zip(pieces, self.parts, strict=True)]

    def gather(self) -> None:
        """Join the parameters' gradients to that of `flat` and clear them; a parameter without one has zeros."""
        grads = [torch.zeros_like(part) if part.grad is None else part.grad for part in self.parts]
        self.flat.grad = torch.cat([grad.reshape(-1) for grad in grads])
        for part in self.parts:
            part.grad = None
