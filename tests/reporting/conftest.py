"""Run directories with the same scores on every machine, each made once; a test that changes one takes a copy."""

import shutil

import pytest
from run_directories import SIX_EPOCHS, record_overrides, write_scores


@pytest.fixture(scope="session")
def run_of(run_here, tmp_path_factory):
    """The directory of a run with these options, with the files of Hydra."""
    made = {}

    def make(*options):
        if options not in made:
            made[options] = tmp_path_factory.mktemp("_".join(options).replace("=", "-") or "run")
            run_here(made[options], *SIX_EPOCHS, *options)
            write_scores(made[options], *options)
            (made[options] / "summary.json").unlink()
            run_here(
                made[options], *SIX_EPOCHS, *options
            )  # trains nothing: writes the summary of these scores
            record_overrides(made[options], *options)
        return made[options]

    return make


@pytest.fixture
def sweep(run_of, tmp_path):
    """A directory with copies of runs, numbered as the jobs of a sweep."""

    def make(*runs):
        for number, options in enumerate(runs):
            shutil.copytree(run_of(*options), tmp_path / f"{number}_job")
        return tmp_path

    return make
