"""The interface of every model of the zoo."""

from dgl import DGLGraph
from torch import Tensor, nn

from egin_dgl.models.arguments import gather_arguments


class GraphModel(nn.Module):
    """A graph classifier, built from a `DatasetInfo` and called as ``model(graph, node_feats, edge_feats) -> logits``.

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

    def forward(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Logits: (B, classes)."""
        raise NotImplementedError

    def embed(self, graph: DGLGraph, node_feats: Tensor, edge_feats: Tensor) -> Tensor:
        """Graph embeddings: one vector per graph, from which the classifier computes logits."""
        raise NotImplementedError
