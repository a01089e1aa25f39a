"""What must stay together when graphs are cut into parts, and what is to be said of the parts."""

import logging

import numpy as np
from omegaconf import DictConfig
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.readers.molecules import scaffold_groups
from egin_dgl.data.splits import Folds
from egin_dgl.errors import ConfigError
from egin_dgl.ewl import duplicate_groups

log = logging.getLogger(__name__)


def check_cutting(dataset: GraphDataset, cv: DictConfig) -> None:
    """Options that say, each alone, how graphs are cut."""
    split_by = cv.get("split_by")
    if split_by and not dataset.smiles:
        raise ConfigError("cv.split_by=scaffold is for molecules: use dataset=smiles")
    others = [
        option
        for option, used in (
            ("cv.folds_file", cv.folds_file),
            ("cv.split_by", split_by),
            ("cv.group_duplicates", cv.group_duplicates),
            ("cv.repeats", cv.repeats != 1),
        )
        if used
    ]
    if dataset.splits and others:
        raise ConfigError(
            f"dataset.split_column says which graph is in which part: leave out {', '.join(others)}"
        )


def groups_of(dataset: GraphDataset, cv: DictConfig) -> np.ndarray | None:
    """(G,) the group of each graph, which is never divided; None where each stands alone."""
    kinds = []
    if cv.get("split_by"):
        groups, scaffolds = scaffold_groups(dataset.smiles)
        sizes = np.bincount(groups)
        if isinstance(cv.k, int) and sizes.max() > len(dataset) / cv.k:
            log.warning(
                "%d of %d molecules have the scaffold %s, more than one of %d parts would hold: parts differ in size",
                sizes.max(),
                len(dataset),
                scaffolds[int(sizes.argmax())],
                cv.k,
            )
        kinds.append(groups)
    if cv.group_duplicates:
        kinds.append(np.asarray(duplicate_groups(dataset, progress=True)))
    return merged(kinds) if kinds else None


def merged(kinds: list[np.ndarray]) -> np.ndarray:
    """Graphs that are together in one kind of groups or another are together."""
    if len(kinds) == 1:
        return kinds[0]
    graphs = np.tile(np.arange(len(kinds[0])), len(kinds))
    starts = np.cumsum([len(kinds[0]), *(int(kind.max()) + 1 for kind in kinds[:-1])])
    homes = np.concatenate([start + kind for start, kind in zip(starts, kinds, strict=True)])
    size = int(homes.max()) + 1
    links = coo_array((np.ones(len(graphs)), (graphs, homes)), shape=(size, size))
    return connected_components(links, directed=False)[1][: len(kinds[0])]


def warn_of(folds: Folds, dataset: GraphDataset, by_groups: bool = False) -> None:
    """Say which parts have no graph of a class that every part could have one of.

    By groups, also of smaller classes: stratified parts share these out as well as can be, groups need not.
    """
    labels = dataset.labels.numpy()
    counts = np.stack([np.bincount(labels[part], minlength=dataset.info.classes) for part in folds.indices])
    sizes = counts.sum(axis=0) // folds.repeats
    for small in np.flatnonzero(sizes < folds.k) if by_groups else ():
        name, homes = dataset.info.class_names[small], np.flatnonzero(counts[:, small])
        told = "class %s has %d graph(s) for %d parts: only part(s) %s have any"
        log.warning(told, name, sizes[small], folds.k, ", ".join(map(str, homes)))
    absent = (counts == 0) & (sizes >= folds.k)
    for number, missing in enumerate(absent):
        if missing.any():
            names = ", ".join(dataset.info.class_names[i] for i in np.flatnonzero(missing))
            log.warning("part %d has no graph of class %s", number, names)
