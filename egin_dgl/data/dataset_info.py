"""DatasetInfo: the sizes and names that models and reports read from a dataset."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class DatasetInfo:
    """Sizes and names of a dataset. The first `*_attributes` feature columns are continuous, the others one-hot.

    Args:
        node_dim: Number of node features, D.
        edge_dim: Number of edge features, Q.
        classes: Number of classes, C.
        name: Name of the dataset.
        graphs: Number of graphs, G.
        node_names, edge_names: Names of the feature columns.
        class_names: Names of the classes.
        node_attributes, edge_attributes: Number of continuous columns.
        size_percentiles: Number of nodes of the training graphs at 0 %, 1 %, … 100 %.
        mean_log_degree: Mean of log(in-degree + 1) over the nodes of the training graphs.

    >>> DatasetInfo(node_dim=7, edge_dim=4, classes=2)
    DatasetInfo(node_dim=7, edge_dim=4, classes=2, name='', graphs=0, node_attributes=0, edge_attributes=0, mean_log_degree=0.0)
    """

    node_dim: int
    edge_dim: int
    classes: int
    name: str = ""
    graphs: int = 0
    node_names: tuple[str, ...] = field(default=(), repr=False)
    edge_names: tuple[str, ...] = field(default=(), repr=False)
    class_names: tuple[str, ...] = field(default=(), repr=False)
    node_attributes: int = 0
    edge_attributes: int = 0
    size_percentiles: tuple[int, ...] = field(default=(), repr=False)
    mean_log_degree: float = 0.0

    @classmethod
    def from_dict(cls, record: dict) -> "DatasetInfo":
        """Restore what `dataclasses.asdict` returned; JSON turns its tuples into lists."""
        return cls(**record | {key: tuple(value) for key, value in record.items() if isinstance(value, list)})
