"""A run is loaded from the weights of its folds: of all that it expects, or of those that are named."""

import json
import shutil

import pytest
import torch

from egin_dgl.data import bonds
from egin_dgl.errors import ConfigError, EginError, TrainingError
from egin_dgl.inference.trained_run import load_run
from egin_dgl.runs.run_dir import RunDir


@pytest.fixture
def run(small_run, tmp_path):
    return RunDir(shutil.copytree(small_run, tmp_path / "run"))


def unfinish(run, fold):
    """As a fold leaves its weights before it is finished."""
    tensors, metadata = run.fold(fold).load_tensors()
    del metadata["temperature"]
    run.fold(fold).save_tensors({name: tensor.clone() for name, tensor in tensors.items()}, metadata)
    run.summary.unlink(missing_ok=True)


def test_predictions_need_the_weights_only(run):
    before = load_run(run.path).predict_dataset(bonds(graphs=60))
    run.fold(1).checkpoint.write_bytes(b"damaged")
    run.fold(2).checkpoint.unlink()
    after = load_run(run.path)
    assert [fold.number for fold in after.folds] == [0, 1, 2]
    assert torch.equal(after.predict_dataset(bonds(graphs=60)).values, before.values)


@pytest.mark.parametrize("damage", ["empty", "half", "missing"])
def test_damaged_weights_are_an_error_unless_other_folds_are_named(run, damage):
    path = run.fold(1).weights
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[: len(content) // 2] if damage == "half" else b"")
    with pytest.raises(TrainingError, match=r"fold_01/best.safetensors: .* or use fold=\[0, 2\]$"):
        load_run(run.path)
    with pytest.raises(TrainingError, match="fold_01/best.safetensors"):
        load_run(run.path, folds=1)
    assert [fold.number for fold in load_run(run.path, folds=[2, 0]).folds] == [0, 2]


def test_an_unfinished_run_names_its_finished_folds(run):
    unfinish(run, 1)
    with pytest.raises(ConfigError, match=r"2 of 3 folds are finished; fold=\[0, 2\] uses these"):
        load_run(run.path)
    with pytest.raises(ConfigError, match="no finished fold 1; valid: 0, 2"):
        load_run(run.path, folds=[0, 1])
    assert [fold.number for fold in load_run(run.path, folds=0).folds] == [0]
    for fold in (0, 2):
        unfinish(run, fold)
    with pytest.raises(ConfigError, match="0 of 3 folds are finished; resume="):
        load_run(run.path)
    with pytest.raises(ConfigError, match="at least one fold"):
        load_run(run.path, folds=[])


def test_nonsensical_metadata_are_one_sentence(run):
    fold = run.fold(0)
    tensors, good = fold.load_tensors()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    info, vocabulary = good["info"], good["vocabulary"]
    infinite = float("inf")
    wrongs = [
        {"info": info | {"size_percentiles": [3]}, "model": good["model"] | {"scale_by_size": True}},
        {"info": info | {"class_names": ["one"]}},
        {"info": info | {"classes": infinite}},
        {"temperature": infinite},
        {"temperature": "x"},
    ]
    for key, value in (("attributes", infinite), ("labels", [[infinite, 1]]), ("labels", infinite)):
        wrongs.append({"vocabulary": vocabulary | {"node": vocabulary["node"] | {key: value}}})
    for wrong in wrongs:
        fold.save_tensors(tensors, good | wrong)
        with pytest.raises(EginError) as caught:
            load_run(run.path, folds=0)
        assert "\n" not in str(caught.value), wrong


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"scores": [[]]}, "scores of a target are missing"),
        ({"graphs": [1]}, "more scores than graphs"),
        ({"graphs": [], "scores": []}, "conformal scores are not those of 1 target"),
        ({"scores": "many"}, "conformal"),
    ],
)
def test_scores_that_cannot_be_used_are_an_error(run, damage, message):
    content = json.loads(run.summary.read_text())
    del content["crc32"]
    content["conformal"] |= damage
    run.summary.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=f"summary.json: damaged .*{message}"):
        load_run(run.path)
