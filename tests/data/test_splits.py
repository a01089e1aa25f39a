import hashlib
import json

import numpy as np
import pytest

from egin_dgl.data import load_tu
from egin_dgl.data.splits import folds_from_column, load_folds, make_folds, split_by_group_size
from egin_dgl.data.stratify import indicators
from egin_dgl.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def cuneiform_labels():
    return load_tu("Cuneiform").labels.numpy()


@pytest.mark.parametrize("k", [2, 10, 267])
def test_folds_are_a_stratified_partition_even_for_small_classes(cuneiform_labels, k):
    labels = cuneiform_labels
    assert np.bincount(labels).max() < 10  # no class has a member for each of ten folds
    folds = make_folds(labels, k, seed=3)
    assert sorted(np.concatenate(folds.indices)) == list(range(len(labels)))
    sizes = [len(part) for part in folds.indices]
    assert max(sizes) - min(sizes) <= 1
    counts = np.array([np.bincount(labels[part], minlength=30) for part in folds.indices])
    assert (counts.max(axis=0) - counts.min(axis=0)).max() <= 1


def test_groups_are_never_split(cuneiform_labels):
    groups = np.random.default_rng(0).integers(0, 120, len(cuneiform_labels))
    groups[:40] = 7  # larger than a fold
    folds = make_folds(cuneiform_labels, 5, seed=1, groups=groups)
    assert sorted(np.concatenate(folds.indices)) == list(range(267))
    homes = [set(groups[part]) for part in folds.indices]
    assert sum(map(len, homes)) == len(set(groups))
    sizes = [len(part) for part in folds.indices]
    assert max(sizes) - min(sizes) <= 15  # 53 each, but for what the groups cost


def test_splits_are_disjoint_and_complete(cuneiform_labels):
    folds = make_folds(cuneiform_labels, 10, seed=0)
    tested = []
    for number in range(10):
        split = folds.split(number, validation=True)
        parts = np.concatenate([split.train, split.validation, split.test])
        assert sorted(parts) == list(range(267))
        assert len(folds.split(number, validation=False).validation) == 0
        tested.extend(split.test)
    assert sorted(tested) == list(range(267))


def test_seed_determines_folds(cuneiform_labels):
    one, same, other = (make_folds(cuneiform_labels, 10, seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, one.indices, same.indices))
    assert not all(map(np.array_equal, one.indices, other.indices))


def test_each_repetition_is_a_cross_validation(cuneiform_labels, tmp_path):
    once, folds = (make_folds(cuneiform_labels, 10, seed=4, repeats=repeats) for repeats in (1, 3))
    assert folds.repeats == 3 and len(folds.indices) == 30
    assert all(map(np.array_equal, once.indices, folds.indices[:10]))
    for repeat in range(3):
        splits = [folds.split(10 * repeat + part, validation=True) for part in range(10)]
        assert sorted(np.concatenate([split.test for split in splits])) == list(range(267))
        for split in splits:
            whole = np.concatenate([split.train, split.validation, split.test])
            assert sorted(whole) == list(range(267))
    assert not any(np.array_equal(folds.indices[i], folds.indices[10 + i]) for i in range(10))
    folds.save(tmp_path / "folds.json")
    again = load_folds(tmp_path / "folds.json", cuneiform_labels)
    assert again.k == 10 and all(map(np.array_equal, again.indices, folds.indices))
    record = json.loads((tmp_path / "folds.json").read_text())
    record["folds"].pop()
    (tmp_path / "folds.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match="exactly once"):
        load_folds(tmp_path / "folds.json", cuneiform_labels)


def test_saved_folds_are_validated(tmp_path, cuneiform_labels):
    path = tmp_path / "folds.json"
    folds = make_folds(cuneiform_labels, 10, 0, "Cuneiform")
    folds.save(path)
    again = load_folds(path, cuneiform_labels, "Cuneiform")
    assert all(map(np.array_equal, folds.indices, again.indices))
    record = json.loads(path.read_text())
    assert {key: record[key] for key in ("dataset", "n", "k", "seed")} == {
        "dataset": "Cuneiform",
        "n": 267,
        "k": 10,
        "seed": 0,
    }
    with pytest.raises(DataError, match="of Cuneiform, not of MUTAG"):
        load_folds(path, cuneiform_labels, "MUTAG")
    with pytest.raises(DataError, match="other labels"):
        load_folds(path, cuneiform_labels[::-1], "Cuneiform")
    record["folds"][0][0] = record["folds"][1][0]
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match="exactly once"):
        load_folds(path, cuneiform_labels, "Cuneiform")
    path.write_text(path.read_text()[:100])
    with pytest.raises(DataError, match="not a folds file"):
        load_folds(path, cuneiform_labels, "Cuneiform")
    with pytest.raises(DataError, match="cannot read the folds file .*: No such file"):
        load_folds(tmp_path / "none.json", cuneiform_labels)


def test_invalid_numbers(cuneiform_labels):
    with pytest.raises(ConfigError, match="cv.k must be an integer from 2 to 267"):
        make_folds(cuneiform_labels, 268)
    with pytest.raises(ConfigError, match="cv.fold must be an integer from 0 to 9, got 10"):
        make_folds(cuneiform_labels, 10).split(10, validation=False)
    with pytest.raises(ConfigError, match="at least 3"):
        make_folds(cuneiform_labels, 2).split(0, validation=True)


# --- folds from elsewhere ------------------------------------------------------------------------------------------

LABELS = np.array([0, 1] * 6)


def record_of(**changes):
    folds = make_folds(LABELS, 3, 0)
    parts = [part.tolist() for part in folds.indices]
    return {"dataset": "", "seed": 0, "k": 3, "labels_hash": folds.labels_hash, "folds": parts} | changes


FOLDS_OF_THREE = record_of()["folds"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"folds": [[g + 0.25 for g in FOLDS_OF_THREE[0]], *FOLDS_OF_THREE[1:]]}, "not a folds file"),
        ({"folds": [FOLDS_OF_THREE[0] + FOLDS_OF_THREE[1], [], FOLDS_OF_THREE[2]]}, "fold 1 is empty"),
        ({"folds": 7}, "not a folds file"),
        ({"folds": [[str(g) for g in part] for part in FOLDS_OF_THREE]}, "not a folds file"),
        ({"folds": [FOLDS_OF_THREE[0][:-1], *FOLDS_OF_THREE[1:]]}, "exactly once"),
        ({"folds": [[2**70], *FOLDS_OF_THREE[1:]]}, "not a folds file"),
        ({"k": 2.5}, "not a folds file"),
        ({"k": 0}, "exactly once"),
        ({"labels_hash": "x"}, "made for other labels"),
    ],
)
def test_invalid_folds_files(tmp_path, change, message):
    path = tmp_path / "folds.json"
    path.write_text(json.dumps(record_of(**change)))
    with pytest.raises(DataError, match=message) as caught:
        load_folds(path, LABELS)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_unreadable_folds_files(tmp_path):
    with pytest.raises(DataError, match="cannot read the folds file .*: Is a directory"):
        load_folds(tmp_path, LABELS)
    with pytest.raises(DataError, match="cannot read the folds file .*: No such file"):
        load_folds(tmp_path / "none.json", LABELS)
    with pytest.raises(ConfigError, match="cv.folds_file must be the path of a folds.json, got 5"):
        load_folds(5, LABELS)
    for text in ("5", "[]", "null", "", "{"):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(DataError, match="not a folds file"):
            load_folds(tmp_path / "odd.json", LABELS)


def test_named_splits(tmp_path):
    parts = ["train"] * 6 + ["Valid"] * 3 + ["test"] * 3
    folds = folds_from_column(parts, LABELS, dataset="own")
    split = folds.split(0, validation=True)
    assert split.train.tolist() == [0, 1, 2, 3, 4, 5] and split.validation.tolist() == [6, 7, 8]
    assert split.test.tolist() == [9, 10, 11]
    folds.save(tmp_path / "folds.json")
    again = load_folds(tmp_path / "folds.json", LABELS)
    assert again.fixed
    with pytest.raises(ConfigError, match="cv.fold must be 0, as there is a single split"):
        again.split(1, validation=True)
    without = folds_from_column(["train"] * 8 + ["test"] * 4, LABELS)
    assert without.split(0, validation=False).test.tolist() == [8, 9, 10, 11]
    with pytest.raises(ConfigError, match="defines no validation set: use cv.validation=false"):
        without.split(0, validation=True)


def test_numbered_folds():
    folds = folds_from_column([str(10 - i % 4) for i in range(12)], LABELS)
    assert folds.k == 4 and not folds.fixed
    assert [part.tolist() for part in folds.indices] == [[3, 7, 11], [2, 6, 10], [1, 5, 9], [0, 4, 8]]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (["train"] * 11 + ["tset"], "got 'tset'"),
        (["train"] * 12, "assigns no graph to test"),
        (["1"] * 12, "one fold only"),
        (["1"] * 6 + ["01"] * 6, "spells one fold in two ways: "),
        (["1"] * 6 + ["1.5"] * 6, "got '1'"),
    ],
)
def test_invalid_split_columns(splits, message):
    with pytest.raises(DataError, match=message):
        folds_from_column(splits, LABELS)


def test_fewer_groups_than_folds_are_an_error():
    with pytest.raises(ConfigError, match="cv.k=3 is more than 2 groups of graphs can fill"):
        make_folds(LABELS, 3, groups=LABELS)


def test_ids_are_saved_unless_they_are_numbers(tmp_path):
    folds = make_folds(np.arange(6) % 2, 2)
    for ids, kept in (
        ((), None),
        (tuple("012345"), None),
        (tuple("123456"), None),
        (tuple("124567"), list("124567")),
    ):
        folds.save(tmp_path / "folds.json", ids)
        assert json.loads((tmp_path / "folds.json").read_text()).get("ids") == kept
        assert load_folds(tmp_path / "folds.json", np.arange(6) % 2).k == 2


def test_folds_of_a_device_are_refused():
    with pytest.raises(DataError, match="^/dev/zero is a device"):
        load_folds("/dev/zero", np.array([0, 1]))


# --- folds by several or real targets ------------------------------------------------------------------------------


def sizes_of(folds):
    return [len(part) for part in folds.indices]


def test_folds_of_classes_are_those_of_earlier_versions(cuneiform_labels):
    groups = np.arange(267) // 2
    for options, digest in (({}, "2bced987c9b1"), ({"groups": groups, "repeats": 2}, "ff248bb60014")):
        folds = make_folds(cuneiform_labels, 10, seed=3, **options)
        assert (
            hashlib.sha256(repr([part.tolist() for part in folds.indices]).encode()).hexdigest()[:12]
            == digest
        )


def test_a_real_target_is_stratified_by_its_deciles():
    values = np.random.default_rng(0).lognormal(size=(203, 1))
    folds = make_folds(values, 10, seed=1)
    assert sorted(np.concatenate(folds.indices)) == list(range(203)) and set(sizes_of(folds)) == {20, 21}
    decile = np.argsort(np.argsort(values[:, 0])) * 10 // 203
    counts = np.array([np.bincount(decile[part], minlength=10) for part in folds.indices])
    assert counts.min() >= 1 and counts.max() <= 3  # two each, but for graphs at the edges of deciles


def several_labels(graphs=400, seed=0):
    """Twelve targets of 2 to 50 % positives, a fifth of them missing."""
    generator = np.random.default_rng(seed)
    labels = (generator.random((graphs, 12)) < np.geomspace(0.02, 0.5, 12)).astype(float)
    labels[generator.random(labels.shape) < 0.2] = np.nan
    return labels


def positives(labels, folds):
    return np.array([(labels[part] == 1).sum(axis=0) for part in folds.indices])


def test_several_targets_are_stratified_jointly():
    labels = several_labels()
    folds = make_folds(labels, 5, seed=2)
    assert sorted(np.concatenate(folds.indices)) == list(range(400)) and set(sizes_of(folds)) == {80}
    spread = np.ptp(positives(labels, folds), axis=0)
    random = [
        np.ptp(positives(labels, make_folds(np.zeros(400, dtype=int), 5, s)), axis=0) for s in range(20)
    ]
    assert spread[:8].max() <= 1 and spread.sum() < np.sum(random, axis=1).min() / 2  # rare labels come first
    rare = np.nansum(labels, axis=0).argmin()
    assert positives(labels, folds)[:, rare].min() >= 1
    known = np.array([(~np.isnan(labels[part])).sum(axis=0) for part in folds.indices])
    assert np.ptp(known, axis=0).max() <= 15


def test_several_real_targets_are_stratified_jointly():
    values = np.random.default_rng(0).normal(size=(300, 3))
    values[:40, 1] = np.nan
    folds = make_folds(values, 5, seed=0)
    means = np.array([np.nanmean(values[part], axis=0) for part in folds.indices])
    random = [make_folds(np.zeros(300, dtype=int), 5, seed) for seed in range(20)]
    spreads = [np.ptp([np.nanmean(values[part], axis=0) for part in one.indices], axis=0) for one in random]
    assert set(sizes_of(folds)) == {60} and np.ptp(means, axis=0).sum() < 0.7 * np.sum(spreads, axis=1).mean()


def test_a_common_value_leaves_no_empty_stratum():
    values = np.random.default_rng(0).normal(size=(100, 2))
    values[:60, 0] = 0.0  # more than a quantile bin holds
    assert indicators(values).any(axis=0).all()
    zeros = [(values[part, 0] == 0).sum() for part in make_folds(values, 5, seed=0).indices]
    assert max(zeros) - min(zeros) <= 1


def test_groups_stay_together_when_several_targets_are_stratified():
    labels = several_labels()
    groups = np.random.default_rng(1).integers(0, 150, 400)
    groups[:70] = 7  # nearly a fold
    folds = make_folds(labels, 5, seed=1, groups=groups)
    assert sorted(np.concatenate(folds.indices)) == list(range(400))
    assert sum(len(set(groups[part])) for part in folds.indices) == len(set(groups))
    assert max(sizes_of(folds)) - min(sizes_of(folds)) <= 4
    assert np.ptp(positives(labels, folds), axis=0)[:5].max() <= 2


def test_seed_and_repetitions_of_several_targets():
    labels = several_labels()
    one, same, other = (make_folds(labels, 5, seed, repeats=2) for seed in (1, 1, 2))
    assert all(map(np.array_equal, one.indices, same.indices))
    assert not any(map(np.array_equal, one.indices, other.indices))
    assert not any(map(np.array_equal, one.indices[:5], one.indices[5:]))


def test_graphs_without_any_label_are_distributed_too():
    labels = several_labels()
    labels[::3] = np.nan
    folds = make_folds(labels, 7, seed=0)
    assert sorted(np.concatenate(folds.indices)) == list(range(400)) and set(sizes_of(folds)) == {57, 58}


# --- the scaffold split of DeepChem and OGB -------------------------------------------------------------------------


def test_groups_by_decreasing_size_fill_training_validation_and_test():
    groups = np.array([0, 1, 2, 2, 3, 3, 3, 3, 3, 3])  # of six, two, one and one
    folds = split_by_group_size(groups, np.zeros(10, dtype=int))
    split = folds.split(0, validation=True)
    assert folds.fixed and split.train.tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
    # Of two groups of one size, the later comes first.
    assert split.validation.tolist() == [1] and split.test.tolist() == [0]


def test_a_group_that_exceeds_the_training_set_is_passed_over():
    groups = np.repeat(np.arange(7), [7, 4, 3, 2, 2, 1, 1])  # 20 graphs: 16, 2, 2
    split = split_by_group_size(groups, np.zeros(20, dtype=int)).split(0, validation=True)
    parts = [sorted(set(groups[part].tolist())) for part in (split.train, split.validation, split.test)]
    assert parts == [[0, 1, 2, 4], [3], [5, 6]]


def test_the_split_equals_its_definition_on_random_groups():
    generator = np.random.default_rng(0)
    for _ in range(50):
        groups = generator.integers(0, 60, 200)
        sets = {}
        for graph, group in enumerate(groups.tolist()):
            sets.setdefault(group, []).append(graph)
        train, validation, test = [], [], []
        for one in sorted(sets.values(), key=lambda one: (-len(one), -min(one))):
            if len(train) + len(one) > 0.8 * 200:
                (test if len(train) + len(validation) + len(one) > 0.9 * 200 else validation).extend(one)
            else:
                train.extend(one)
        split = split_by_group_size(groups, np.zeros(200, dtype=int)).split(0, validation=True)
        assert (split.train.tolist(), split.validation.tolist(), split.test.tolist()) == (
            *(sorted(part) for part in (train, validation, test)),
        )


def test_one_scaffold_alone_cannot_be_split():
    with pytest.raises(ConfigError, match="has 9 of 10 molecules, which leaves the test set empty"):
        split_by_group_size(np.array([0] * 9 + [1]), np.zeros(10, dtype=int))


def test_k_gives_the_shares_of_a_scaffold_split():
    groups, labels = np.arange(20), np.zeros(20, dtype=int)
    split = split_by_group_size(groups, labels, k=5).split(0, validation=True)
    assert [len(part) for part in (split.train, split.validation, split.test)] == [12, 4, 4]
    with pytest.raises(ConfigError, match="cv.k must be at least 3 for a scaffold split, got 2"):
        split_by_group_size(groups, labels, k=2)
