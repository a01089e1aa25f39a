"""The interface of every model of the zoo."""

import inspect
import re

from torch import Tensor, nn

from egin_dgl.data.edge_list import Graph
from egin_dgl.options import constructors

ARGS = re.compile(r"\n\s*Args:\n(?P<lines>.*?)(?=\n\s*\n|\Z)", re.DOTALL)
ARGUMENT = re.compile(r"^(\w+): (.*(?:\n +.*)*)", re.MULTILINE)


class GraphModel(nn.Module):
    """A graph classifier, built from a `DatasetInfo` and called as ``model(graph, node_feats, edge_feats) -> logits``.

    The graph is a `DGLGraph` or an `EdgeList`.

    Shapes: for N nodes and E edges in a batch of B graphs, (N, node_dim), (E, edge_dim) -> (B, classes).
    """

    title: str  # in tables and plots
    paper: str = ""  # authors, venue and year
    when: str = ""  # one line: when to use it
    uses_edges: bool = True  # False: edge features never change the logits
    uses_structure: bool = True  # False: which nodes an edge connects never changes the logits

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        gather_arguments(cls)

    @property
    def name(self) -> str:
        """The model's name in tables and plots; a variant may extend its title."""
        return self.title

    def forward(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Logits: (B, classes)."""
        raise NotImplementedError

    def embed(self, graph: Graph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Graph embeddings: one vector per graph, from which the classifier computes logits."""
        raise NotImplementedError


def gather_arguments(model: type) -> None:
    """Give the class a signature without ``**options``, and a docstring with all arguments before its example.

    `help(Model)`, the validation of options and the configuration files need every argument by name; it is written once, in
    the class that uses it.
    """
    parameters: dict[str, inspect.Parameter] = {}
    for function in constructors(model):
        declared = list(inspect.signature(function).parameters.values())[1:]
        named = [p for p in declared if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        # Arguments of a base without a default, such as its layers, are passed by the model.
        for p in named if not parameters else [p for p in named if p.default is not p.empty]:
            parameters.setdefault(p.name, p)
        if not any(p.kind is p.VAR_KEYWORD for p in declared):
            break
    ordered = sorted(parameters.values(), key=lambda p: (p.kind, p.default is not p.empty))
    model.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    described: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        described |= documented_arguments(vars(cls).get("__doc__") or "")
    lines = [f"    {p}: {described[p]}".replace("\n", "\n    ") for p in parameters if p in described]
    if lines:
        text = ARGS.sub("", inspect.cleandoc(model.__dict__.get("__doc__") or "")).strip()
        text, example, rest = text.partition("Example:")
        model.__doc__ = "\n".join([text.rstrip(), "", "Args:", *lines, "", example + rest]).strip() + "\n"


def documented_arguments(doc: str) -> dict[str, str]:
    """The arguments in the Args section of a docstring, with their descriptions."""
    section = ARGS.search("\n" + inspect.cleandoc(doc))
    return dict(ARGUMENT.findall(inspect.cleandoc("\n" + section["lines"]))) if section else {}
