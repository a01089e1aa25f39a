"""Loaded models compute the logits of the run: every model of the zoo, every transform."""

from pathlib import Path

import pytest
import torch

from egin_dgl.data import bonds, load_tu
from egin_dgl.data.splits import load_folds
from egin_dgl.errors import DataError
from egin_dgl.evaluation.calibration import pooled_temperature
from egin_dgl.evaluation.history import selected_record
from egin_dgl.inference.trained_run import load_run
from egin_dgl.runs.reader import read_run
from egin_dgl.runs.run_dir import RunDir

CONF = Path(__file__).resolve().parent.parent.parent / "conf"
MODELS = sorted(
    path.stem for path in (CONF / "model").glob("*.yaml") if path.stem != "morgan_forest"
)  # SMILES only
SMALL = dict.fromkeys(("majority", "wl_kernel", "ewl_kernel"), ()) | {"ewl_forest": ("model.num_trees=10",)}
SHORT = ("trainer.epochs=2", "trainer.batch_size=16", "cv.fold=0")
TRANSFORMS = {
    "onehot": ("ewl=colors",),
    "embedding": ("ewl=colors", "ewl.encoding=embedding"),
    "hash": ("ewl=colors", "ewl.encoding=hash"),
    "precomputed": ("model=ewl_kernel", "model.kind=precomputed"),
    "bf16": ("trainer.precision=bf16",),
    "nested": ("cv=nested", "cv.k=3", "cv.grid={model: {hidden_dim: [4, 8]}}"),
    "holdout": ("cv=holdout", "cv.k=3"),
    "paper": ("cv=paper", "cv.k=3"),
}


def check_logits(directory, dataset):
    """The logits of the test sets at the saved epochs."""
    run, results = load_run(directory), read_run(directory).results
    folds = load_folds(RunDir(directory).folds, dataset.labels.numpy())
    temperature = pooled_temperature(list(results.values()))
    for fold in run.folds:
        result = results[fold.number]
        expected = result.test_logits[selected_record(result.history).epoch - 1]
        tested = torch.as_tensor(folds.split(fold.number, False).test)
        assert fold.temperature == temperature
        torch.testing.assert_close(fold.logits(dataset)[tested], expected, rtol=1e-4, atol=1e-4)
    return run


@pytest.mark.parametrize("model", MODELS)
def test_every_model_computes_the_logits_of_its_run(trained, model):
    small = SMALL.get(model, ("model.hidden_dim=8",))
    check_logits(trained(f"model={model}", *small, *SHORT), bonds(graphs=60))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_and_protocol_computes_the_logits_of_its_run(trained, name):
    run = check_logits(trained(*TRANSFORMS[name], *SHORT), bonds(graphs=60))
    assert run.calibrated == (name != "paper")


def test_standardized_attributes_give_the_logits_of_the_run(run_here, tmp_path):
    """Cuneiform has continuous node and edge attributes."""
    small = ("model.hidden_dim=8", "cv.k=3", *SHORT)
    run_here(tmp_path, "dataset=cuneiform", *small)
    run = check_logits(tmp_path, load_tu("Cuneiform"))
    assert run.folds[0].transforms


def test_other_features_than_in_training_are_an_error(trained):
    run = load_run(trained("model=gin", "model.hidden_dim=8", *SHORT))
    with pytest.raises(
        DataError, match="the model was trained with node features label0=0, label0=1, the graphs have"
    ):
        run.predict(load_tu("MUTAG"))
