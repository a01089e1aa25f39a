"""Folds of a run: read or made, with groups of graphs that stay together, and warnings about them."""

import logging
from collections.abc import Mapping

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.fingerprints import scaffold_groups
from egin_dgl.data.splits import (
    Folds,
    Split,
    fold_numbers,
    folds_from_column,
    load_folds,
    make_folds,
    split_by_group_size,
)
from egin_dgl.errors import ConfigError, DataError, list_first
from egin_dgl.ewl.audit import count_leaks, duplicate_groups
from egin_dgl.files import move_aside
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.settings import Settings

MAX_GRAPHS, MAX_EDGES = 20_000, 2_000_000  # up to which duplicates are searched in about a second

log = logging.getLogger(__name__)


def make_splits(dataset: GraphDataset, settings: Settings, run: RunDir) -> tuple[Folds, dict[int, Split]]:
    """Return the folds and, by number, the splits of those to run; save the folds with the run."""
    cv, labels = settings["cv"], dataset.labels.numpy()
    check_split_options(dataset, cv)
    if cv["folds_file"]:
        folds = load_folds(cv["folds_file"], labels, dataset.info.name)
    elif saved := load_saved_folds(run, dataset):
        folds = saved
    elif cv.get("split_by") == "scaffold_size":
        scaffolds, _ = scaffold_groups(dataset.smiles, acyclic=True)
        folds = split_by_group_size(scaffolds, labels, settings["seed"], dataset.info.name, cv["k"])
    elif dataset.splits:
        folds = folds_from_column(dataset.splits, labels, settings["seed"], dataset.info.name)
    else:
        groups = split_groups(dataset, cv)
        folds = make_folds(labels, cv["k"], settings["seed"], dataset.info.name, groups, cv["repeats"])
        if not cv["group_duplicates"]:
            warn_divided_duplicates(folds, dataset)
    warn_missing_classes(folds, dataset, by_groups=cv.get("split_by") == "scaffold")
    chosen = cv.get("fold")
    every = [0] if folds.fixed else range(len(folds.indices))
    numbers = every if chosen is None else fold_numbers(chosen)
    splits = {number: folds.split(number, cv["validation"]) for number in numbers}
    folds.save(run.folds, dataset.ids)
    return folds, splits


def load_saved_folds(run: RunDir, dataset: GraphDataset) -> Folds | None:
    """Return the folds of folds.json; None if there are none or the file is damaged: the same are made again."""
    if not run.folds.exists():
        return None
    try:
        return load_folds(run.folds, dataset.labels.numpy(), dataset.info.name)
    except DataError as error:
        log.warning("%s; it is moved aside and written again", error)
        move_aside(run.folds)
        return None


def check_split_options(dataset: GraphDataset, cv: Mapping) -> None:
    """Refuse options that exclude each other or need other data."""
    if cv.get("split_by") and not dataset.smiles:
        raise ConfigError(f"cv.split_by={cv['split_by']} is for molecules: use dataset=smiles")
    options = {"folds_file": cv["folds_file"], "split_by": cv.get("split_by")}
    options |= {"group_duplicates": cv["group_duplicates"], "repeats": cv["repeats"] != 1}
    others = [f"cv.{option}" for option, used in options.items() if used]
    if cv.get("split_by") == "scaffold_size" and (
        wrong := [name for name in others if name != "cv.split_by"]
    ):
        raise ConfigError(f"cv.split_by=scaffold_size makes a single split: leave out {', '.join(wrong)}")
    if dataset.splits and others:
        raise ConfigError(f"dataset.split_column defines the splits: leave out {', '.join(others)}")


def split_groups(dataset: GraphDataset, cv: Mapping) -> np.ndarray | None:
    """Return (G,) the group of each graph, which is never divided; None without groups."""
    kinds = []
    if cv.get("split_by"):
        groups, scaffolds = scaffold_groups(dataset.smiles)
        sizes = np.bincount(groups)
        if sizes.max() > len(dataset) / cv["k"]:
            log.warning(
                "%d of %d molecules have the scaffold %s, more than one of %d folds would hold: folds differ in size",
                sizes.max(),
                len(dataset),
                scaffolds[int(sizes.argmax())],
                cv["k"],
            )
        kinds.append(groups)
    if cv["group_duplicates"]:
        kinds.append(np.asarray(duplicate_groups(dataset, progress=True)))
    return merge_groups(kinds) if kinds else None


def merge_groups(kinds: list[np.ndarray]) -> np.ndarray:
    """Return the finest groups in which graphs stay together that share a group of any kind."""
    if len(kinds) == 1:
        return kinds[0]
    graphs = np.tile(np.arange(len(kinds[0])), len(kinds))
    starts = np.cumsum([len(kinds[0]), *(int(kind.max()) + 1 for kind in kinds[:-1])])
    groups = np.concatenate([start + kind for start, kind in zip(starts, kinds, strict=True)])
    size = int(groups.max()) + 1
    links = coo_array((np.ones(len(graphs)), (graphs, groups)), shape=(size, size))
    return connected_components(links, directed=False)[1][: len(kinds[0])]


def warn_divided_duplicates(folds: Folds, dataset: GraphDataset) -> None:
    """Warn of duplicates in different folds; large datasets are not searched."""
    if len(dataset) > MAX_GRAPHS or len(dataset.src) > MAX_EDGES:
        return
    if count := count_leaks(dataset, folds.indices[: folds.k]):
        log.warning(
            "%d of %d graphs have a duplicate (equal E-WL colours) in another fold: cv.group_duplicates=true keeps "
            "duplicates together",
            count,
            len(dataset),
        )


def warn_missing_classes(folds: Folds, dataset: GraphDataset, by_groups: bool = False) -> None:
    """Warn of folds without a graph of a class that has one for every fold.

    Args:
        by_groups: warn of smaller classes as well, which groups distribute less evenly than stratified folds.
    """
    labels = dataset.labels.numpy()
    if not dataset.info.classes:
        warn_missing_targets(folds, dataset)
        return
    counts = np.stack([np.bincount(labels[part], minlength=dataset.info.classes) for part in folds.indices])
    sizes = counts.sum(axis=0) // folds.repeats
    for small in np.flatnonzero(sizes < folds.k) if by_groups else ():
        name, present = dataset.info.class_names[small], np.flatnonzero(counts[:, small])
        message = "class %s has %d graph(s) for %d folds: only fold(s) %s have any"
        log.warning(message, name, sizes[small], folds.k, ", ".join(map(str, present)))
    absent = (counts == 0) & (sizes >= folds.k)
    for number, missing in enumerate(absent):
        if missing.any():
            names = ", ".join(dataset.info.class_names[i] for i in np.flatnonzero(missing))
            log.warning("%s has no graph of class %s", name_fold(folds, number), names)


def warn_missing_targets(folds: Folds, dataset: GraphDataset) -> None:
    """Warn of folds without a value of a target, or, of a target of two values, without one of them."""
    for name, column in zip(dataset.info.target_names, dataset.labels.numpy().T, strict=True):
        known = ~np.isnan(column)
        values = np.unique(column[known])
        wanted = {f"with {name} = {value:g}": column == value for value in values if len(values) == 2}
        for text, graphs in (wanted or {f"with a value of {name}": known}).items():
            without = [name_fold(folds, i) for i, part in enumerate(folds.indices) if not graphs[part].any()]
            if without:
                log.warning("no graph %s in %s", text, list_first(without, limit=10))


def name_fold(folds: Folds, number: int) -> str:
    """A fold for messages; those of a single split are its sets."""
    sets = ("test", "validation", "training") if folds.k == 3 else ("test", "training")
    return f"the {sets[number]} set" if folds.fixed else f"fold {number}"
