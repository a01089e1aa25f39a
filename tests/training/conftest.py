from functools import partial

import pytest
import running
import torch

from egin_dgl.data import bonds
from egin_dgl.data.splits import make_folds
from egin_dgl.models import EGINE
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.training.job import FoldJob, Recipe
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.trainer import fit_fold


@pytest.fixture(scope="session")
def data():
    return bonds(graphs=40)


@pytest.fixture
def make_job(numbers, data, tmp_path):
    """A small fold job; keywords replace its options, `lr` and the folder's name."""

    def make(
        fold=0, folder="run", lr=0.01, validation=True, scheduler=None, model=EGINE, transforms=(), **options
    ):
        folds = make_folds(data.labels.numpy(), 4, seed=0)
        return FoldJob(
            fold=fold,
            seed=7 + running.seed,
            split=folds.split(fold, validation),
            folder=FoldDir(tmp_path / folder / f"fold_{fold:02d}", fold),
            train=fit_fold,
            device=torch.device("cpu"),
            recipe=Recipe(
                make_model=partial(model, hidden_dim=8, num_layers=2, learn_eps=True, mlp_dropout=0.2),
                make_optimizer=partial(torch.optim.Adam, lr=lr),
                make_scheduler=scheduler or partial(torch.optim.lr_scheduler.StepLR, step_size=3, gamma=0.5),
                options=TrainerOptions(**({"epochs": 6, "batch_size": 8, "checkpoint_every": 2} | options)),
                metadata={"model": {}},
                transforms=transforms,
            ),
        )

    return make
