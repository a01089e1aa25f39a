"""Perturbed edges, to see what edges are worth: constant or permuted features, removed or rewired edges.

An edge and its reverse move together, so undirected graphs stay undirected and keep the same features in both directions. The random
numbers of a graph depend on the seed and its id, not on the graphs beside it: a new graph is perturbed alike in any chunk.
"""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from egin_dgl.data.arrays import GraphArrays, RawColumns, unique_labels
from egin_dgl.data.ragged import offsets_of

EdgeFeatures = Literal["keep", "constant", "permuted"]
Structure = Literal["keep", "none", "rewired"]

TRIES = 10  # swaps that are tried per pair of edges; most succeed in a sparse graph


@dataclass(frozen=True)
class EdgePairs:
    """Each edge tail → head with its reverse, if it has one; P pairs, grouped by graph."""

    tail: np.ndarray  # (P,) nodes
    head: np.ndarray
    edge: np.ndarray  # (P,) numbers of edges
    reverse: np.ndarray  # (P,) -1 for one-way edges and self-loops
    offsets: np.ndarray  # (G + 1,) the pairs of graph g are offsets[g]:offsets[g + 1]

    def of_graph(self, graph: int) -> list[np.ndarray]:
        """Numbers of the two-way edges, the one-way edges and the self-loops of a graph."""
        members = np.arange(self.offsets[graph], self.offsets[graph + 1])
        two_way, loop = self.reverse[members] >= 0, self.tail[members] == self.head[members]
        return [members[two_way], members[~two_way & ~loop], members[loop]]


def pair_edges(arrays: GraphArrays) -> EdgePairs:
    """Pair each edge with its reverse; parallel edges are paired in the order of their features."""
    low, high = np.minimum(arrays.src, arrays.dst), np.maximum(arrays.src, arrays.dst)
    backward = arrays.src > arrays.dst
    order = np.lexsort((_feature_ranks(arrays.edges), backward, high, low))
    first = _starts(low[order], high[order], backward[order])
    rank = np.empty_like(order)  # of an edge among those with the same ends and direction
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    order = np.lexsort((backward, rank, high, low))  # an edge, then its reverse
    first = _starts(low[order], high[order], rank[order])
    edge, reverse = order[first], np.full(len(first), -1)
    paired = np.diff(first, append=len(order)) == 2
    reverse[paired] = order[first[paired] + 1]
    tail = arrays.src[edge]
    counts = np.bincount(arrays.node_graph[tail], minlength=arrays.graphs)
    return EdgePairs(tail, arrays.dst[edge], edge, reverse, offsets_of(counts))


def perturb_features(arrays: GraphArrays, edge_features: EdgeFeatures, seed: int = 0) -> GraphArrays:
    """Edges without features ("constant"), or with the features permuted within each graph ("permuted")."""
    if edge_features == "constant":
        return replace(arrays, edges=RawColumns())
    if edge_features == "keep" or not any(arrays.edges.widths):
        return arrays
    pairs, rows = pair_edges(arrays), np.arange(len(arrays.src))
    for graph, random in _generators(arrays, seed, stream=0):
        for members in pairs.of_graph(graph):
            source = random.permutation(members)
            rows[pairs.edge[members]] = pairs.edge[source]
            two_way = pairs.reverse[members] >= 0
            rows[pairs.reverse[members[two_way]]] = pairs.reverse[source[two_way]]
    return replace(arrays, edges=arrays.edges.take(rows, len(rows)))


def perturb_structure(arrays: GraphArrays, structure: Structure, seed: int = 0) -> GraphArrays:
    """Nodes without edges ("none"), or edges rewired by double-edge swaps that keep all degrees ("rewired").

    A swap turns edges a–b, c–d into a–d, c–b, each with the features it had. It is refused if it would join a node to itself
    or nodes that are adjacent; so complete graphs and stars stay as they are, which a warning counts.
    """
    if structure == "none":
        nothing = np.zeros(0, dtype=np.int64)
        return replace(arrays, src=nothing, dst=nothing, edges=arrays.edges.take(nothing, 0))
    if structure == "keep":
        return arrays
    pairs, unchanged = pair_edges(arrays), 0
    for graph, random in _generators(arrays, seed, stream=1):
        unchanged += not _swap(pairs, graph, random)
    src, dst, two_way = arrays.src.copy(), arrays.dst.copy(), pairs.reverse >= 0
    src[pairs.edge], dst[pairs.edge] = pairs.tail, pairs.head
    reverse = pairs.reverse[two_way]
    src[reverse], dst[reverse] = pairs.head[two_way], pairs.tail[two_way]
    arrays = replace(arrays, src=src, dst=dst)
    if not unchanged:
        return arrays
    return arrays.with_warning(
        f"{unchanged} of {arrays.graphs} graph(s) are not rewired: no two of their edges can exchange ends"
    )


def _swap(pairs: EdgePairs, graph: int, random: np.random.Generator) -> bool:
    """Try random swaps of a graph, in place; whether any succeeded."""
    start, stop = pairs.offsets[graph : graph + 2].tolist()
    arrays = (pairs.tail, pairs.head, pairs.edge, pairs.reverse)
    tail, head, edge, reverse = (one[start:stop].tolist() for one in arrays)  # faster to index than arrays
    adjacent = Counter(map(_key, tail, head))
    swapped = False
    for members in pairs.of_graph(graph)[:2]:
        if len(members) < 2:
            continue
        tries = TRIES * len(members)
        chosen = (members - start)[random.integers(len(members), size=(tries, 2))].tolist()
        for (i, j), turn in zip(chosen, (random.random(tries) < 0.5).tolist(), strict=True):
            if turn and reverse[j] >= 0:  # an undirected edge may exchange either end
                tail[j], head[j], edge[j], reverse[j] = head[j], tail[j], reverse[j], edge[j]
            a, b, c, d = tail[i], head[i], tail[j], head[j]
            new = _key(a, d), _key(c, b)
            if i == j or a == d or c == b or adjacent[new[0]] or adjacent[new[1]]:
                continue
            adjacent.subtract([_key(a, b), _key(c, d)])
            adjacent.update(new)
            head[i], head[j] = d, b
            swapped = True
    for one, values in zip(arrays, (tail, head, edge, reverse), strict=True):
        one[start:stop] = values
    return swapped


def _key(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _generators(arrays: GraphArrays, seed: int, stream: int) -> Iterator[tuple[int, np.random.Generator]]:
    for graph, name in enumerate(arrays.ids):
        yield graph, np.random.default_rng([seed, stream, zlib.crc32(name.encode())])


def _feature_ranks(columns: RawColumns) -> np.ndarray:
    """Numbers (rows,) that are equal for rows with equal features."""
    ranks = [unique_labels(column)[1] for column in columns.columns()[1]]
    if columns.attributes is not None:
        ranks += [np.unique(column, return_inverse=True)[1] for column in columns.attributes.T]
    if not ranks:
        return np.zeros(columns.rows, dtype=np.int64)
    return np.unique(np.stack(ranks, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _starts(*keys: np.ndarray) -> np.ndarray:
    """Where a new combination of sorted keys begins."""
    changes = [np.flatnonzero(np.diff(key)) + 1 for key in keys]
    return np.unique(np.concatenate([np.zeros(min(len(keys[0]), 1), dtype=np.int64), *changes]))
