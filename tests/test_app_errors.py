"""What goes wrong is said in one line, and costs no more than it must."""

import re
import shutil

import pytest
from running import SMALL


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["model=nothing"], r"model has no option 'nothing'; valid: .*egin, egin_c, egin_e"),
        (
            ["model.hiden_dim=3"],
            r"no option 'model.hiden_dim'; valid in model: .*\(did you mean hidden_dim\?\)",
        ),
        (["cv=nested", "cv.grid={nothing: 1}"], r"Could not override 'cv.grid'"),
        (["dataset=bonds", "model.readout=add"], r"model.readout must be one of sum, mean, max, got 'add'"),
        (["dataset=tu"], r"Missing mandatory value: dataset.name"),
        (["dataset=bonds", "optimizer.lr=-1"], r"optimizer.lr must be a number from 0 on, got -1"),
        (["cv=paper", "trainer.patience=3"], r"trainer.patience needs a validation part"),
        (["resume=nowhere"], r"nowhere is not the directory of a run"),
        (["dataset=bonds", "model.dropout=nan"], r"model.dropout must be a number from 0 to 1, got nan"),
        (["dataset=bonds", "~model"], r"model is missing: choose one by model=NAME"),
        (["=5"], r"'=5' names no option: write OPTION=VALUE"),
        (["model=5"], r"model must be one of .*egin, egin_c, egin_e.*, got '5'"),
        (
            ["-m", "hydra/launcher=submitit_slurm"],
            r"hydra/launcher=submitit_slurm needs SLURM, and there is no srun",
        ),
    ],
)
def test_a_known_error_is_one_line_and_exit_code_1(refused, options, message, tmp_path, monkeypatch):
    if shutil.which("srun"):  # as where there is no SLURM
        monkeypatch.setenv("PATH", str(tmp_path))
    extra = [] if options[0].startswith("resume") else ["hydra.job_logging.root.level=ERROR"]
    done = refused(tmp_path, *options, *extra)
    (line,) = done.stderr.splitlines()
    assert re.match(f"error: .*{message}", line)


def test_the_full_error_is_there_for_those_who_ask(refused, tmp_path):
    done = refused(tmp_path, "trainer.epochs=0", HYDRA_FULL_ERROR="1")
    assert "Traceback" in done.stderr and "trainer.epochs must be a whole number from 1 to" in done.stderr


def test_a_multirun_gives_each_job_its_folder_and_survives_a_failing_one(command, tmp_path):
    done = command(
        "-m",
        *SMALL[:-1],
        "cv=holdout",
        "model=egin,egin_c",
        "model.hidden_dim=8,0",
        f"hydra.sweep.dir={tmp_path}",
    )
    assert done.returncode == 1
    assert "model.hidden_dim must be a whole number from 1 to 4096" in " ".join(done.stdout.split())
    jobs = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert jobs == ["0_egin_bonds", "1_egin_bonds", "2_egin_c_bonds", "3_egin_c_bonds"]
    assert [(tmp_path / job / "summary.json").exists() for job in jobs] == [True, False, True, False]
