"""The plugin that marks tests which train."""

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent

EXAMPLES = """
    import subprocess
    import sys

    import pytest
    import running
    import torch
    from running import SCRIPT, SMALL

    from egin_dgl.training.job import FoldJob


    @pytest.fixture(scope="module")
    def run(run_here):
        step()


    def step():
        weight = torch.nn.Parameter(torch.ones(1))
        (weight**2).backward()
        torch.optim.SGD([weight]).step()
        assert weight < 1


    def test_marked_by_a_fixture_of_a_fixture(request, run):
        assert request.node.get_closest_marker("numbers")


    @pytest.mark.numbers
    def test_marked_by_hand():
        step()


    def test_silent_app(tmp_path):
        running.run_here(tmp_path, *SMALL)


    def test_silent_command():
        subprocess.run([sys.executable, str(SCRIPT), "--help"])


    def test_silent_shell_line():
        subprocess.run(f"{sys.executable} {SCRIPT} --help", shell=True)


    def test_silent_make():
        subprocess.run(["make", "-n", "train"], cwd=SCRIPT.parent.parent)


    def test_silent_step():
        step()


    def test_silent_fold():
        FoldJob()


    def test_silent_fixture(request):
        request.getfixturevalue("run_here")("nowhere", *SMALL)


    def test_refused(refused, tmp_path):
        assert "epochs" in refused(tmp_path, "dataset=bonds", "trainer.epochs=0").stderr


    def test_not_refused(refused, tmp_path):
        refused(tmp_path, *SMALL, "cv.fold=0", "optimizer.lr=1e30")


    def test_without_training():
        subprocess.run([sys.executable, SCRIPT.with_name("table.py"), "--help"], check=True)
"""


@pytest.mark.slow
def test_training_without_marker_fails(pytester, monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(map(str, (TESTS, TESTS.parent / "scripts", TESTS.parent)))
    )
    pytester.makeconftest((TESTS / "conftest.py").read_text())
    pytester.makepyfile(EXAMPLES)
    done = pytester.runpytest_subprocess("-v", "--strict-markers", "-p", "no:xdist")
    done.assert_outcomes(passed=4, failed=8)
    for outcome in (
        "*::test_marked_* PASSED*",
        "*::test_silent_* FAILED*",
        "*::test_refused PASSED*",
        "*::test_not_refused FAILED*",
        "*::test_without_training PASSED*",
    ):
        done.stdout.fnmatch_lines(outcome)
    text = done.stdout.str()
    assert text.count("without the marker: train by a fixture") >= 7
