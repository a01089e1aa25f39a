"""`reproducible=…`: bitwise equal numbers under CPU settings that differ without it."""

import csv
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from running import ROOT, SMALL, command, edit_settings, run_here

from egin_dgl import openblas, reproducibility
from egin_dgl.cli.overrides import requested_arithmetic
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
# These tests set the CPU flags themselves.
pytestmark = [
    pytest.mark.usefixtures("numbers"),
    pytest.mark.skipif("MKL_CBWR" in os.environ, reason="sets its own CPU flags"),
]
# All but the model of molecules, which the graphs here are not.
MODELS = sorted(
    path.stem for path in (ROOT / "conf" / "model").glob("*.yaml") if path.stem != "morgan_forest"
)
TINY = [*SMALL, "trainer.epochs=2", "device=cpu"]


def digits(folder: Path) -> dict[str, list]:
    """Text of every history below a directory, without times."""
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
    """Histories of models on the newer and the older processor."""

    def run(models, *options):
        places = [(tmp_path_factory.mktemp("histories"), processor) for processor in (NEWER, OLDER)]
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda place: histories(place[0], models, place[1], *options), places))

    return run


@pytest.mark.slow
def test_every_model_is_equal_on_both_processors(on_both):
    newer, older = on_both(MODELS, "reproducible=any")
    assert sorted(newer) == MODELS
    assert [model for model in MODELS if newer[model] != older[model]] == []


@pytest.mark.parametrize("reproducible", ["any", pytest.param("avx2", marks=pytest.mark.slow)])
def test_models_are_equal_on_both_processors(on_both, reproducible):
    newer, older = on_both(["dgcnn", "egin_e", "wl_kernel"], f"reproducible={reproducible}")
    assert newer == older


@pytest.mark.slow
def test_models_differ_without_it(on_both):
    newer, older = on_both(["dgcnn", "egin_e"])
    assert newer["dgcnn"] != older["dgcnn"] and newer["egin_e"] != older["egin_e"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep on the newer processor whose jobs have different settings, in processes started by joblib."""
    folder = tmp_path_factory.mktemp("sweep")
    launched = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", f"hydra.sweep.dir={folder}"]
    done = command("-m", *TINY, "reproducible=any,false", *launched, **NEWER)
    assert done.returncode == 0, done.stderr
    return {name: folder / f"{number}_egin_e_bonds" for number, name in enumerate(("any", "false"))}


def truncated(run: Path, folder: Path) -> Path:
    """Copy of the run as if killed with one fold finished."""
    shutil.copytree(run, folder)
    for path in ("fold_01", "fold_02"):
        shutil.rmtree(folder / path)
    (folder / "summary.json").unlink()
    return folder


def record(run: Path) -> dict:
    return json.loads((run / "run.json").read_text())


@pytest.mark.slow
def test_each_job_of_a_sweep_has_its_own_setting(swept):
    assert digits(swept["any"]) != digits(swept["false"])
    assert [record(run)["settings"]["reproducible"] for run in swept.values()] == ["any", False]
    kept = {name: record(run)["arithmetic"] for name, run in swept.items()}
    assert kept["any"]["capability"] == "DEFAULT" and kept["any"]["flags"]["MKL_CBWR"] == "COMPATIBLE"
    assert kept["false"]["capability"] == "AVX2" and kept["false"]["flags"] == NEWER
    assert kept["any"]["processor"] == kept["false"]["processor"] and kept["any"]["threads"] == 1


@pytest.mark.slow
def test_python_call_equals_the_command(swept, tmp_path):
    """In a fresh process, as torch is loaded here."""
    before = dict(os.environ)
    summary = run_here(tmp_path, *TINY, "reproducible=any")
    assert dict(os.environ) == before
    kept = json.loads((tmp_path / "summary.json").read_text())
    assert json.loads(json.dumps(summary)).items() <= kept.items()  # plus a checksum
    assert digits(tmp_path) == digits(swept["any"])


@pytest.mark.slow
def test_run_resumes_bitwise_on_the_other_processor(swept, tmp_path):
    folder = truncated(swept["any"], tmp_path / "run")
    edit_settings(folder, lambda settings: settings["trainer"].update(fold_workers=2))
    done = command(f"resume={folder}", **OLDER)
    assert done.returncode == 0, done.stderr
    assert digits(folder) == digits(swept["any"])
    assert "digits" not in done.stdout + done.stderr


@pytest.mark.slow
def test_resuming_elsewhere_without_it_warns(swept, tmp_path):
    done = command(f"resume={truncated(swept['false'], tmp_path / 'run')}", **OLDER)
    assert done.returncode == 0, done.stderr
    (sentence,) = [line for line in (done.stdout + done.stderr).splitlines() if "digits" in line]
    assert "MKL_CBWR=AVX2" in sentence and "MKL_CBWR=COMPATIBLE" in sentence
    assert sentence.endswith("which reproducible=any prevents")


def test_processor_without_the_instructions_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reproducibility, "read_cpuinfo", lambda name: "fpu sse2 avx")
    reproducibility.restart_if_needed("avx2")  # leaves the error to the run
    with pytest.raises(ConfigError, match="needs a processor with AVX2 and FMA; use reproducible=any"):
        run_here(tmp_path, *SMALL, "reproducible=avx2")
    assert reproducibility.flags("any")


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("qemu-x86_64") is None, reason="qemu-x86_64 (Debian's qemu-user) is not installed"
)
@pytest.mark.parametrize("processor", ["Haswell-v1", "EPYC-v2"])
def test_operations_are_equal_on_an_emulated_processor(processor):
    """With its name, caches and instructions, by which libraries choose kernels; without QEMU's notes on what it lacks."""
    program = ROOT / "tests" / "operations.py"
    environment = os.environ | reproducibility.flags("avx2") | {"PYTHONPATH": os.pathsep.join(sys.path)}

    def digests(*emulator):
        command = [
            *emulator,
            os.path.realpath(sys.executable),
            program,
        ]  # QEMU does not follow the link of a venv
        return subprocess.check_output(command, env=environment, text=True, stderr=subprocess.DEVNULL)

    here = digests()
    assert len(here.splitlines()) > 10 and digests("qemu-x86_64", "-cpu", processor) == here


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 1), (0.5, 2)])
def test_products_by_openblas_equal_those_of_torch(beta, alpha):
    """Strides, empty matrices, integers and half precision included."""
    for dtype, size in (
        (torch.float32, 8),
        (torch.float64, 8),
        (torch.int64, 8),
        (torch.bfloat16, 8),
        (torch.float32, 0),
    ):
        if dtype is torch.int64 and beta == 0.5:
            continue  # torch refuses it
        a, b, c = (torch.randint(-4, 5, shape).to(dtype) for shape in ((2, 6, size), (2, size, 5), (2, 6, 5)))
        flipped = a.transpose(1, 2).contiguous().transpose(1, 2)
        scaled = {"beta": beta, "alpha": alpha}
        assert torch.equal(openblas.product(flipped, b), a @ b)
        assert torch.equal(openblas.add_product(c, a, b, **scaled), torch.baddbmm(c, a, b, **scaled))
        matrices = c[0].clone(), a[0], b[0]
        expected = torch.addmm(*matrices, **scaled)
        assert torch.equal(openblas.add_product_(*matrices, **scaled), expected)
        assert torch.equal(matrices[0], expected)
        assert torch.equal(openblas.product_out(a[0], b[0], out=torch.empty_like(c[0])), a[0] @ b[0])


def test_error_in_a_fresh_process_is_raised_here(tmp_path):
    with pytest.raises(ConfigError, match="cv.k must be an integer from 2 to 60"):
        run_here(tmp_path, *SMALL, "cv.k=100", "reproducible=any")


@pytest.mark.parametrize("value", ["true", "AVX2"])
def test_invalid_value_lists_the_valid_ones(value, tmp_path):
    with pytest.raises(ConfigError, match="^reproducible must be False, 'avx2' or 'any', got "):
        run_here(tmp_path, *SMALL, f"reproducible={value}")


def test_arithmetic_of_a_command_or_of_the_directory_it_resumes_is_known_before_torch(tmp_path):
    resume = [f"resume={tmp_path}"]
    assert requested_arithmetic(resume) is None
    for content, expected in (
        ("[", None),
        ('{"settings": {"reproducible": "any"}}', "any"),
        ('{"settings": {"reproducible": {}}}', None),
    ):
        (tmp_path / "run.json").write_text(content)
        assert requested_arithmetic(resume) == expected
    jobs = [{"settings": {"reproducible": "avx2"}}] * 2
    (tmp_path / "sweep.json").write_text(json.dumps({"jobs": jobs}))
    assert requested_arithmetic(resume) == "avx2"
    assert requested_arithmetic(["reproducible=any", "model=gin", "reproducible=avx2"]) == "avx2"
    assert requested_arithmetic(["-m", "reproducible=false,any"]) not in reproducibility.FLAGS
    assert requested_arithmetic(["model=gin"]) is None
    assert requested_arithmetic(["experiment=paper_tables", "model=gin"]) == "avx2"
    assert requested_arithmetic(["experiment=" + 300 * "x"]) is None
    assert (
        requested_arithmetic(["experiment=paper_tables", "reproducible=false"]) not in reproducibility.FLAGS
    )
