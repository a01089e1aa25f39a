"""Generated graphs that 1-WL cannot distinguish and E-WL can."""

import hashlib
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from egin_dgl.data.arrays import GraphArrays, RawColumns
from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.perturb import EdgeFeatures, Structure
from egin_dgl.data.prepare import GraphOptions, from_arrays
from egin_dgl.errors import ConfigError
from egin_dgl.options import Seed

SINGLE, DOUBLE = 1, 2
RING, PENDANT = 0, 1
CLASSES = ("alternating", "scrambled")


def bonds(
    graphs: Annotated[int, Field(ge=2, le=100_000)] = 400,
    skeletons: Annotated[int, Field(ge=1, le=100_000)] = 4,
    seed: Seed = 0,
    edge_features: EdgeFeatures = "keep",
    structure: Structure = "keep",
    shuffle_seed: Seed = 0,
) -> GraphDataset:
    """Rings of single and double bonds: does every ring atom have exactly one double bond?

    A skeleton is a ring of 2m atoms (6, 8, 10 or 12) with a few pendant atoms on single bonds. m ring bonds are
    double. In class 0 they alternate, as in benzene; in class 1 they are placed so that some atom has two of them and
    another none. Both classes use every skeleton equally often, and node labels (ring, pendant) depend on the skeleton
    only, so without edge labels both classes are the same graphs: 1-WL, GIN and any model that ignores edges reach
    50 %, and so does a count of bonds per graph. One step of E-WL distinguishes the classes.

    Args:
        graphs: Number of graphs, even, half in each class.
        skeletons: Number of different skeletons.
        seed: Seed of the generator.
        edge_features, structure, shuffle_seed: See `GraphOptions`.

    >>> bonds(graphs=10)
    GraphDataset('bonds': 10 graphs, 104 nodes, 208 edges, 2 classes, node_dim=2, edge_dim=2)
    """
    for option, value, minimum in (("graphs", graphs, 2), ("skeletons", skeletons, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
            raise ConfigError(f"bonds: {option} must be an integer of at least {minimum}, got {value!r}")
    if graphs % 2:
        raise ConfigError(f"bonds: graphs must be even, half of them in each class, got {graphs}")
    rng = np.random.default_rng(seed)
    shapes = [_skeleton(number, rng) for number in range(skeletons)]
    edges, labels, atoms, owners, start = [], [], [], [], 0
    for graph in range(graphs):
        ring, pendants = shapes[graph // 2 % skeletons]
        if graph % 2 == 0:
            bond = np.where(np.arange(ring) % 2 == rng.integers(2), DOUBLE, SINGLE)
        else:
            bond = _scrambled(ring, rng)
        size = ring + len(pendants)
        cycle = np.stack([np.arange(ring), (np.arange(ring) + 1) % ring])
        edges.append(start + np.concatenate([cycle, np.stack([pendants, np.arange(ring, size)])], axis=1))
        labels.append(np.concatenate([bond, np.full(len(pendants), SINGLE)]))
        atoms.append(np.where(np.arange(size) < ring, RING, PENDANT))
        owners.append(np.full(size, graph))
        start += size
    one_way = np.concatenate(edges, axis=1)
    both_ways = np.concatenate([one_way, one_way[::-1]], axis=1)
    bond_labels = np.tile(np.concatenate(labels), 2)[:, None]
    arrays = GraphArrays(
        node_graph=np.concatenate(owners),
        src=both_ways[0],
        dst=both_ways[1],
        graphs=int(graphs),
        targets=(np.arange(graphs) % 2).astype(object)[:, None],
        task="multiclass",
        nodes=RawColumns(labels=np.concatenate(atoms)[:, None]),
        edges=RawColumns(labels=bond_labels),
    )
    options = GraphOptions(edge_features=edge_features, structure=structure, shuffle_seed=shuffle_seed)
    recipe = f"bonds graphs={graphs} skeletons={skeletons} seed={seed}"
    recipe += f" edge_features={edge_features} structure={structure} shuffle_seed={shuffle_seed}"
    digest = hashlib.sha256(b"".join(x.tobytes() for x in (both_ways, bond_labels)) + recipe.encode())
    dataset = from_arrays(arrays, "bonds", options, digest=digest.hexdigest(), origin=f"generated: {recipe}")
    return replace(dataset, info=replace(dataset.info, class_names=CLASSES))


def _skeleton(number: int, rng: np.random.Generator) -> tuple[int, np.ndarray]:
    """Ring size, and the ring atoms with a pendant atom: 1 to 3, so that both atom labels occur."""
    ring = 6 + 2 * (number % 4)
    return ring, np.sort(rng.choice(ring, size=rng.integers(1, 4), replace=False))


def _scrambled(ring: int, rng: np.random.Generator) -> np.ndarray:
    bond = np.repeat([SINGLE, DOUBLE], ring // 2)
    while True:
        rng.shuffle(bond)
        if (bond == np.roll(bond, 1)).any():  # two equal neighbours: not alternating
            return bond.copy()
