import json

import numpy as np
import pytest

from egin_dgl.data import load_tu
from egin_dgl.data.splits import folds_from_column, load_folds, make_folds
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
    with pytest.raises(ConfigError, match="cv.fold must be 0, as the dataset defines a single split"):
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
