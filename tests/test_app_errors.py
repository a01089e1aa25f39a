"""Known errors of the command line are one line on stderr and exit code 1."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from hydra.core.global_hydra import GlobalHydra
from running import SCRIPT

from egin_dgl.cli.main import main


@pytest.fixture
def fail(capsys, monkeypatch, tmp_path):
    """`egin` with these arguments, in this process: the line of its error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["egin", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        GlobalHydra.instance().clear()
        line = str(caught.value)
        assert "\n" not in line and not list(tmp_path.rglob("fold_*"))
        return line

    return run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["model=nothing"], r"model has no option 'nothing'; valid: .*egin, egin_c, egin_c_eps, egin_e"),
        (
            ["model.hiden_dim=3"],
            r"there is no option 'model.hiden_dim'; valid in model: .*\(did you mean hidden_dim\?\)",
        ),
        (["modle.x=3"], r"there is no option 'modle'; valid: cv, dataset, .*\(did you mean model\?\)"),
        (["hydra.swep.dir=x"], r"there is no option 'hydra.swep'; valid in hydra: .*mean sweep\?"),
        (["seed.x=3"], r"there is no option 'seed.x'$"),
        (["cv=nested", "cv.grid={nothing: 1}"], r"Could not override 'cv.grid'"),
        (["dataset=tu"], r"Missing mandatory value: dataset.name"),
        (
            ["dataset=bonds", "model.dropout=nan"],
            r"model.dropout must be a finite number or be 'auto', got nan",
        ),
        (["cv=paper", "dataset=bonds", "trainer.patience=3"], r"trainer.patience needs a validation"),
        (["dataset=bonds", "~model"], r"model is missing: choose one by model=NAME"),
        (["tr{ainer.epochs=3"], r"'tr\{ainer.epochs=3' is not OPTION=VALUE: quote special characters"),
        (["dataset.path=a{b"], r"'dataset.path=a\{b' is not OPTION=VALUE"),
        (["-m", "dataset=bonds", "model.num_layers=x"], r"the only job: model.num_layers must be .*no job"),
        (["=5"], r"'=5' names no option: write OPTION=VALUE"),
        (["model=5"], r"model must be one of .*egin, egin_c, egin_c_eps, egin_e.*, got '5'"),
        (["hydra/launcher=0"], r"hydra/launcher must be .*, got '0'"),
        (["-m", "hydra/launcher=submitit_slurm"], r"hydra/launcher=submitit_slurm needs SLURM"),
    ],
)
def test_a_known_error_is_one_line(fail, options, message, tmp_path, monkeypatch):
    if shutil.which("srun"):  # as on a machine without SLURM
        monkeypatch.setenv("PATH", str(tmp_path))
    assert re.match(f"error: .*{message}", fail("train", *options))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], r"there is no command 'trian'; valid: train, .*\(did you mean train\?\)"),
        (["table"], "outputs: no such directory"),
        (["table", "nowhere"], "nowhere: no such directory"),
        (["predict", "input=x.csv"], "needed: run=…"),
        (["predict", "run=x", "inptu=x.csv"], r"there is no option 'inptu'; .*\(did you mean input\?\)"),
        (["predict", "run=x", "input=y", "at_once=0"], r"at_once must be greater than or equal to 1, got 0"),
        (["predict", "run=x", "input=y", "device=gpu"], "device must be auto, cpu, cuda"),
        (["explain", "run=x", "input=y", "graph=1", "by=luck"], "by must be 'occlusion' or 'gradients'"),
        (["explain", "run=", "input=y", "graph=1"], "run must have at least 1 character"),
        (["ewl", "draw", "dataset=bonds"], "draw takes 1 numbers of graphs, got 0"),
        (["ewl", "audit", "dataset=bonds", "abc"], "'abc' is neither an option"),
    ],
)
def test_errors_of_other_commands(fail, arguments, message):
    assert re.match(f"error: {message}", fail(*arguments))


def test_what_cannot_be_a_directory_is_refused_before_any_work(fail, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    for out in ("pipe", "file", "file/new", "link"):
        message = f"error: cannot write to the directory {out}: {out.split('/')[0]} is not a directory"
        assert fail("explain", "run=nowhere", "input=y", "graph=1", f"out={out}") == message
        assert fail("table", ".", "--out", out) == message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "pipe"]


def test_a_misspelt_option_waits_for_no_slow_import(unwatched):
    # With one worker there is no forkserver, which imports torch in a process of its own.
    command = [sys.executable, "-X", "importtime", SCRIPT, "trainer.fold_workers=1", "modle=egin"]
    with unwatched():  # it is refused
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    loaded = set(re.findall(r"\| +(\w+)$", done.stderr, re.MULTILINE))
    assert "did you mean model?" in done.stderr and "hydra" in loaded
    assert not loaded & {"torch", "dgl", "numpy", "pandas", "scipy", "pydantic", "rich", "matplotlib"}


def test_help_of_every_command_lists_its_options(capsys, monkeypatch):
    for name, expected in {
        "train": ["trainer.epochs=100", "dataset=mutag", "seed of folds"],
        "predict": ["at_once=     graphs read at once", "(default: 1024)", "run=         directory of a run"],
        "explain": ["by=          method of the picture", "(default: occlusion)"],
        "table": ["default: outputs"],
        "ewl": ["--depth"],
    }.items():
        monkeypatch.setattr(sys, "argv", ["egin", name, "--help"])
        monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
        try:
            main()
        except SystemExit as end:  # argparse
            assert not end.code
        printed = capsys.readouterr().out
        assert all(text in printed for text in expected), name


def test_output_that_nobody_reads_ends_a_command_quietly(unwatched):
    command, pipe = [sys.executable, SCRIPT, "--help"], subprocess.PIPE
    with unwatched(), subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_the_traceback_is_shown_on_request(refused, tmp_path):
    done = refused(tmp_path, "trainer.epochs=0", HYDRA_FULL_ERROR="1")
    assert (
        "Traceback" in done.stderr
        and "trainer.epochs must be greater than or equal to 1, got 0" in done.stderr
    )
