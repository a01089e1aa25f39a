"""`reproducible=…`: the same digits under arithmetics that differ without it, however the job came to its process."""

import csv
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running import ROOT, SMALL, command, run_here

from egin_dgl import arithmetic
from egin_dgl.cli.overrides import with_those_resumed
from egin_dgl.errors import ConfigError

# Two processors, as the libraries see them: one with AVX2 and one without.
NEWER = {
    "MKL_CBWR": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "LIBXSMM_TARGET": "hsw",
}
OLDER = {
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Prescott",
    "LIBXSMM_TARGET": "snb",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
}
# They set the arithmetic themselves: under another one around them they would show the same again.
pytestmark = [
    pytest.mark.usefixtures("numbers"),
    pytest.mark.skipif("MKL_CBWR" in os.environ, reason="sets its own arithmetic"),
]
MODELS = sorted(path.stem for path in (ROOT / "conf" / "model").glob("*.yaml"))
TINY = [*SMALL, "trainer.epochs=2", "device=cpu"]


def digits(folder: Path) -> dict[str, list]:
    """Every history below a folder as it is written, but for the times."""
    found = {}
    for path in sorted(folder.rglob("history.csv")):
        with path.open(newline="") as lines:
            rows = [{**row, "seconds": ""} for row in csv.DictReader(lines)]
        found[str(path.parent.relative_to(folder))] = rows
    return found


def histories(folder: Path, models: list[str], processor: dict, *options: str) -> dict[str, list]:
    script = [sys.executable, ROOT / "tests" / "zoo_histories.py", folder, *models, "--"]
    shrunk = ["dataset=mutag", "trainer.epochs=1", *options]
    done = subprocess.run([*script, *shrunk], env=os.environ | processor, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return digits(folder)


@pytest.fixture(scope="module")
def on_both(tmp_path_factory):
    """The digits of models on the newer and the older processor, side by side."""

    def run(models, *options):
        places = [(tmp_path_factory.mktemp("histories"), processor) for processor in (NEWER, OLDER)]
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda place: histories(place[0], models, place[1], *options), places))

    return run


def test_every_model_and_kernel_has_the_same_digits_on_both_processors(on_both):
    newer, older = on_both(MODELS, "reproducible=any")
    assert sorted(newer) == MODELS
    assert [model for model in MODELS if newer[model] != older[model]] == []


def test_without_it_they_differ_and_avx2_undoes_that_too(on_both):
    """All but what hardly computes: counts of colours are exact, and so may be the kernel made of them."""
    newer, older = on_both(MODELS)
    alike = {model for model in MODELS if newer[model] == older[model]}
    assert alike <= {"majority", "ewl_kernel", "wl_kernel"}
    models = ["dgcnn", "egin_e", "gin", "wl_kernel"]
    newer, older = on_both(models, "reproducible=avx2")
    assert newer == older


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep on the newer processor in which each job has its own setting, in processes that joblib started."""
    folder = tmp_path_factory.mktemp("sweep")
    launched = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", f"hydra.sweep.dir={folder}"]
    done = command("-m", *TINY, "reproducible=any,false", *launched, **NEWER)
    assert done.returncode == 0, done.stderr
    return {name: folder / f"{number}_egin_e_bonds" for number, name in enumerate(("any", "false"))}


def cut_off(run: Path, folder: Path) -> Path:
    """The run as if it had been killed with one fold finished."""
    shutil.copytree(run, folder)
    for path in ("fold_01", "fold_02"):
        shutil.rmtree(folder / path)
    (folder / "summary.json").unlink()
    return folder


def record(run: Path) -> dict:
    return json.loads((run / "run.json").read_text())


def test_each_job_of_a_sweep_computes_as_it_says(swept):
    assert digits(swept["any"]) != digits(swept["false"])
    assert [record(run)["settings"]["reproducible"] for run in swept.values()] == ["any", False]
    kept = {name: record(run)["arithmetic"] for name, run in swept.items()}
    assert kept["any"]["capability"] == "DEFAULT" and kept["any"]["flags"]["MKL_CBWR"] == "COMPATIBLE"
    assert kept["false"]["capability"] == "AVX2" and kept["false"]["flags"] == NEWER
    assert kept["any"]["processor"] == kept["false"]["processor"] and kept["any"]["threads"] == 1


def test_a_call_from_python_has_the_digits_of_the_command(swept, tmp_path):
    """This process, with torch loaded long ago, computes as the machine does."""
    before = dict(os.environ)
    summary = run_here(tmp_path, *TINY, "reproducible=any")
    assert dict(os.environ) == before
    kept = json.loads((tmp_path / "summary.json").read_text())
    assert json.loads(json.dumps(summary)).items() <= kept.items()  # which has a checksum besides
    assert digits(tmp_path) == digits(swept["any"])


def test_a_run_goes_on_with_its_own_digits_on_the_other_processor(swept, tmp_path):
    folder = cut_off(swept["any"], tmp_path / "run")
    with (folder / ".hydra" / "overrides.yaml").open("a") as overrides:
        overrides.write("- trainer.fold_workers=2\n")
    done = command(f"resume={folder}", **OLDER)
    assert done.returncode == 0, done.stderr
    assert digits(folder) == digits(swept["any"])
    assert "digits" not in done.stdout + done.stderr


def test_a_run_that_promised_nothing_says_so_when_it_goes_on_elsewhere(swept, tmp_path):
    done = command(f"resume={cut_off(swept['false'], tmp_path / 'run')}", **OLDER)
    assert done.returncode == 0, done.stderr
    (sentence,) = [line for line in (done.stdout + done.stderr).splitlines() if "digits" in line]
    assert "MKL_CBWR=AVX2" in sentence and "MKL_CBWR=COMPATIBLE" in sentence
    assert sentence.endswith("which reproducible=any prevents")


def test_where_avx2_cannot_be_kept_it_is_said(tmp_path):
    """MKL hears of its AVX2 branch on Intel's processors only."""
    done = command(*TINY, "reproducible=avx2", f"hydra.run.dir={tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    kept = "intel" in arithmetic.processor().lower()
    assert ("kept by Intel's processors only" in done.stdout + done.stderr) == (not kept)
    folder = cut_off(tmp_path / "run", tmp_path / "theirs")
    ours = record(folder)
    ours["arithmetic"]["processor"] = "AMD EPYC 9"
    (folder / "run.json").write_text(json.dumps(ours))
    done = command(f"resume={folder}")
    assert done.returncode == 0, done.stderr
    assert "this run began on AMD EPYC 9" in done.stdout + done.stderr
    assert digits(folder) == digits(tmp_path / "run")


def test_an_error_in_a_fresh_process_is_the_same_error(tmp_path):
    with pytest.raises(ConfigError, match="cv.k must be an integer from 2 to 60"):
        run_here(tmp_path, *SMALL, "cv.k=100", "reproducible=any")


@pytest.mark.parametrize("value", ["yes", "true", "AVX2", "null"])
def test_a_wrong_value_is_one_sentence_with_the_valid_ones(value, tmp_path):
    with pytest.raises(ConfigError, match="^reproducible must be false, avx2 or any, got "):
        run_here(tmp_path, *SMALL, f"reproducible={value}")


def test_the_words_of_a_command_or_of_the_folder_it_resumes_are_read_before_torch_is_loaded(tmp_path):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text("- model=gin\n- reproducible=any\n")
    resume = [f"resume={tmp_path}"]
    assert arithmetic.asked_for(with_those_resumed(resume)) == "any"
    asked = {"hydra": [], "task": ["reproducible=avx2", "seed=0,1"], "trials": None}
    (tmp_path / "sweep.json").write_text(json.dumps(asked, indent=1))
    assert arithmetic.asked_for(with_those_resumed(resume)) == "avx2"
    assert arithmetic.asked_for(["reproducible=any", "model=gin", "reproducible=avx2"]) == "avx2"
    assert arithmetic.asked_for(["-m", "reproducible=false,any"]) not in arithmetic.FLAGS
    assert arithmetic.asked_for(["model=gin"]) is None
