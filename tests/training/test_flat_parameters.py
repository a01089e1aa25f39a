"""Steps as training takes them: what an optimizer does to the weights, and nothing that torch lays around it."""

import os
from functools import partial
from pathlib import Path

import pytest
import torch
from running import SMALL
from torch.optim.optimizer import register_optimizer_step_pre_hook

from egin_dgl.training import flat_parameters
from egin_dgl.training.flat_parameters import FlatParameters, make_optimizer, take_step

OPTIMIZERS = [
    partial(kind, lr=0.01, weight_decay=0.1)
    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam, torch.optim.SGD)
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", OPTIMIZERS, ids=lambda make: make.func.__name__)
def test_a_step_taken_is_the_optimizers_own(make, numbers, monkeypatch):
    monkeypatch.setattr(flat_parameters, "EVERYWHERE", ())  # the suite's own hook waits for every step
    found = []
    for step in (take_step, lambda optimizer: optimizer.step()):
        torch.manual_seed(0)
        model = torch.nn.Linear(5, 3)
        optimizer = make_optimizer(make, model, FlatParameters(model))
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for _ in range(3):
            model(torch.randn(4, 5)).square().sum().backward()
            step(optimizer)
            scheduler.step()  # warns of an optimizer that has made no step
        found.append(model.weight.detach().clone())
    assert torch.equal(*found)


def test_a_hook_on_an_optimizer_sees_its_steps(numbers):
    model = torch.nn.Linear(5, 3)
    optimizer = torch.optim.Adam(model.parameters())
    seen = []
    optimizer.register_step_post_hook(lambda *_: seen.append("post"))
    take_step(optimizer)
    handle = register_optimizer_step_pre_hook(lambda *_: seen.append("pre"))
    take_step(torch.optim.SGD(model.parameters(), lr=0.1))
    handle.remove()
    assert seen == ["post", "pre"]


def test_a_fold_does_not_load_torchs_compiler(command, tmp_path):
    """It takes a second in every worker, and is only asked to stay out."""
    if "__dynamo_disable" not in Path(torch._compile.__file__).read_text():
        pytest.skip("this torch loads it at every turn")
    own = tmp_path / "sitecustomize.py"
    own.write_text(
        "import atexit, sys\natexit.register(lambda: print('compiler:', 'torch._dynamo' in sys.modules))\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    options = [*SMALL, "trainer.fold_workers=1", f"hydra.run.dir={tmp_path / 'run'}"]
    done = command(*options, PYTHONPATH=path)
    assert done.returncode == 0 and done.stdout.endswith("compiler: False\n"), done.stdout
