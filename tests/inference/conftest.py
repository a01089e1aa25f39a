"""A run of each kind that tests here look at, trained once."""

import csv

import pytest

OPTIONS = ["dataset=bonds", "dataset.graphs=60", "cv.k=3", "trainer.epochs=12"]


@pytest.fixture(scope="session")
def trained(run_here, tmp_path_factory):
    """The folder of a run with these options beside OPTIONS; the same options, the same folder."""
    folders = {}

    def folder(*options):
        if options not in folders:
            folders[options] = tmp_path_factory.mktemp("run")
            run_here(folders[options], *OPTIONS, *options)
        return folders[options]

    return folder


@pytest.fixture(scope="session")
def rows():
    """The lines of a CSV as dicts."""

    def read(path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read
