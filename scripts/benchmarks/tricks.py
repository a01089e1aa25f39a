"""What each trick of colour refinement is worth: its time with the trick switched off, over its time with all."""

import statistics
import time
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np

from egin_dgl.data import load_tu
from egin_dgl.errors import DataError
from egin_dgl.ewl import labels, ranking, refine, rounds, rows

DEPTH = 5
DATASETS = ("MUTAG", "PTC_MR", "AIDS", "COX2_MD")
GRAPHS = (
    ("random 4", 100_000),
    ("random 40", 100_000),
    ("torus", 100_000),
    ("random 4", 1_000_000),
    ("random 40", 1_000_000),
)


def plain_order(keys, bound):
    return np.argsort(keys)


def plain_groups(place, src, edge, nodes, edges):
    order = np.argsort(place)
    return src[order], edge[order]


# trick: (module, name, what stands there without the trick), for each place where it is used
TRICKS = {
    "class and codes in one number": [(rows, "codes_that_fit", lambda count, base, most: 0)],
    "only tied rows compared further": [(rows, "shared", lambda slots: np.ones(len(slots), dtype=bool))],
    "short rows by sorting networks": [(rows, "NETWORKS", {})],
    "a value sorted with its position": [
        (where, "sorting_order", plain_order) for where in (ranking, rows, rounds)
    ],
    "a table in place of a sort": [(ranking, "table_pays", lambda bound, count: False)],
    "nodes alone in their class left out": [(rounds, "WORTH_LEAVING", 1.0)],
    "an edge sorted as one number": [(rounds, "group_edges", plain_groups)],
    "one-hot labels as one number": [(labels, "LONGEST_RUN", 0)],
}
TRICKS["all of these"] = [change for changes in TRICKS.values() for change in changes]


@contextmanager
def without(trick: str):
    with ExitStack() as stack:
        for change in TRICKS[trick]:
            stack.enter_context(patch.object(*change))
        yield


def make_graph(kind: str, edges: int) -> tuple[tuple, np.ndarray, np.ndarray]:
    """One graph with node and edge labels. "random N" has N edges a node, and few nodes are alike after two rounds;
    "torus" is a grid without a border and one marked node in a hundred, where every round has work to do."""
    rng = np.random.default_rng(0)
    if kind == "torus":
        side = round((edges / 4) ** 0.5)
        nodes = np.arange(side * side).reshape(side, side)
        a, b = (
            np.tile(nodes.ravel(), 2),
            np.concatenate([np.roll(nodes, -1, axis).ravel() for axis in (0, 1)]),
        )
        node_labels, edge_labels = rng.random(side * side) < 0.01, np.repeat([0, 1], side * side)
    else:
        count = edges // int(kind.split()[1])
        a, b = rng.integers(0, count, (2, edges // 2))
        node_labels, edge_labels = rng.integers(0, 5, count), rng.integers(0, 4, edges // 2)
    graph = (np.concatenate([a, b]), np.concatenate([b, a]), len(node_labels))
    return graph, node_labels, np.tile(edge_labels, 2)


def workloads() -> dict:
    """What is refined, by name: a function without arguments."""
    found = {}
    for name in DATASETS:
        try:
            dataset = load_tu(name, url=None)
        except DataError as error:
            print(f"{name} left out: {error}")
            continue
        found[name] = lambda dataset=dataset: refine(dataset, "e-wl", DEPTH, attributes=False)
    for kind, edges in GRAPHS:
        graph, *own = make_graph(kind, edges)
        size = f"{edges // 1_000_000}M" if edges >= 1_000_000 else f"{edges // 1000}k"
        found[f"{kind}, {size}"] = lambda graph=graph, own=own: refine(graph, "e-wl", DEPTH, None, *own)
    return found


def seconds(work, window: float = 0.05) -> float:
    """Processor time of one call, the mean of as many as fill the window."""
    start, calls = time.process_time(), 0
    while calls == 0 or time.process_time() - start < window:
        work()
        calls += 1
    return (time.process_time() - start) / calls


def ratios(work, turns: int) -> tuple[float, dict[str, float]]:
    """Seconds with all tricks, and the ratio without each: medians over turns that take all sides one after another."""
    plain, found = [], {trick: [] for trick in TRICKS}
    for _ in range(turns):
        plain.append(seconds(work))
        for trick, values in found.items():
            with without(trick):
                values.append(seconds(work) / plain[-1])
    return statistics.median(plain), {trick: statistics.median(values) for trick, values in found.items()}


def worth(turns: int) -> str:
    """A Markdown table: one row a trick, one column a workload."""
    columns = {name: ratios(work, turns) for name, work in workloads().items()}
    lines = [["without", *columns], ["---", *["--:"] * len(columns)]]
    for trick in TRICKS:
        lines.append([trick, *(f"{found[trick]:.2f}" for _, found in columns.values())])
    lines.append(["with all, ms", *(f"{1e3 * plain:.1f}" for plain, _ in columns.values())])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
