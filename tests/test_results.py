"""Results of the paper's tables: exported from runs, shown in docs/results.md, computed again with the same digits."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from docgen import claims, edge_worth, results_page
from docgen.blocks import find_blocks, format_output, load_register
from docgen.results import NAMES, PROTOCOLS, CellResult, export_runs, load_cells, make_command, save_cells
from docgen.results_figure import draw_results
from docgen.results_page import Results
from docgen.retrain import CANARIES, find_changed, load_canaries
from results import RESULTS, SECTIONS
from running import ROOT, SMALL

from egin_dgl.data.readers.search_path import find_raw
from egin_dgl.errors import ConfigError, EginError
from egin_dgl.reporting.many_runs.paper import PUBLISHED

PERTURBED = (
    ["dataset.edge_features=constant"],
    ["dataset.edge_features=permuted"],
    ["dataset.structure=rewired"],
    ["dataset.structure=none"],
)


@pytest.fixture(scope="module")
def results():
    return Results.load(ROOT)


def make_cell(results, dataset, model, cv, mean, seed=0, others=()):
    """A cell of ten folds around a mean, which no training gave."""
    scores = [round(mean + 0.01 * (fold % 5 - 2), 6) for fold in range(10)]
    reproducible = "false" if seed else "avx2"
    return CellResult(
        command=make_command(dataset, model, cv, *others, seed=seed, reproducible=reproducible),
        dataset=results.datasets[dataset],
        model=NAMES[model],
        seed=seed,
        **dict.fromkeys(("commit", "processor", "data", "digits"), "made up"),
        versions={},
        parameters=10,
        seconds=1.0,
        test_to_train=1 / 8,
        folds=list(range(10)),
        accuracy={name: scores if name != "selected" or cv != "paper" else None for name in PROTOCOLS},
        **dict.fromkeys(("auroc", "mcc", "log_loss"), scores),
        chosen=["model.hidden_dim=32"] * 10 if cv == "nested" else None,
    )


@pytest.fixture(scope="module")
def complete(results):
    """All cells of both tables, equal to the published means; models that are not in the paper have 50 %."""
    cells = {}
    for dataset, name in results.datasets.items():
        for model in results.models:
            paper = PUBLISHED.get((NAMES[model], name))
            mean = paper.mean / 100 if paper else 0.5
            for cv, seed in (("paper", 0), ("ten_fold", 0), ("ten_fold", 1), ("nested", 0)):
                cell = make_cell(results, dataset, model, cv, mean, seed)
                cells[cell.command] = cell
        for others in PERTURBED:
            cell = make_cell(results, dataset, "egin_e", "ten_fold", 0.5, others=others)
            cells[cell.command] = cell
    return replace(results, cells=cells)


def without(results, *command):
    return replace(results, cells={k: v for k, v in results.cells.items() if k != make_command(*command)})


@pytest.mark.parametrize("section", SECTIONS)
def test_page_shows_what_the_files_hold(results, section):
    block = load_register(ROOT / "docs" / "blocks.yaml")[f"results_{section}"]
    written = find_blocks((ROOT / "docs" / "results.md").read_text(encoding="utf-8"))[block.name]
    assert written.content == format_output(SECTIONS[section](results), block), (
        f"run: python scripts/docs.py {block.name}"
    )


def test_files_are_small_sorted_and_of_the_datasets_of_the_tables(results, tmp_path):
    files = sorted(RESULTS.glob("*.jsonl"))
    assert {path.stem for path in files} <= set(results.datasets)
    assert sum(path.stat().st_size for path in files) < 2000 * max(len(results.cells), 1)
    save_cells(reversed(results.cells.values()), tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        path.name: path.read_text() for path in files
    }
    for cell in results.cells.values():
        dataset, model = (word.partition("=")[2] for word in shlex.split(cell.command)[2:4])
        assert (cell.dataset, cell.model) == (results.datasets[dataset], NAMES[model])
        if "dataset." not in cell.command:  # the edges are not perturbed
            assert cell.data == results.facts[dataset]["data"]
        assert all(len(scores) == len(cell.folds) for scores in cell.accuracy.values() if scores)


def test_the_dataset_as_it_is_and_perturbed_are_cells_of_their_own(run_here, tmp_path):
    small = [*SMALL, "model=gin", "cv.fold=[0,1]"]
    run_here(tmp_path / "kept", *small, "dataset.edge_features=keep", "dataset.structure=keep")
    run_here(tmp_path / "constant", *small, "dataset.edge_features=constant", "dataset.structure=keep")
    export_runs([tmp_path], tmp_path, commit="abc")
    kept, constant = sorted(load_cells(tmp_path), key=len)
    assert "edge_features" not in kept and "dataset.edge_features=constant" in constant
    assert "structure" not in kept + constant


def test_finished_runs_are_exported_once(small_run, tmp_path):
    assert export_runs([small_run.parent], tmp_path, commit="abc") == (1, 1)
    (cell,) = load_cells(tmp_path).values()
    summary = json.loads((small_run / "summary.json").read_text())
    assert (cell.command.split()[2:5], cell.commit) == (["dataset=bonds", "model=gin", "cv=ten_fold"], "abc")
    assert cell.accuracy["selected"] == pytest.approx(summary["protocols"]["selected"]["per_fold"], abs=1e-6)
    assert cell.mcc == pytest.approx(summary["metrics"]["mcc"]["per_fold"], abs=1e-6)
    written = (tmp_path / "bonds.jsonl").read_bytes()
    assert export_runs([small_run.parent], tmp_path, commit="later") == (0, 1)
    assert (tmp_path / "bonds.jsonl").read_bytes() == written
    with pytest.raises(ConfigError, match="in no git repository"):
        export_runs([small_run.parent], tmp_path)


def test_complete_tables_have_no_gap_and_missing_cells_are_shown(complete):
    assert results_page.overview(complete).count("120 of 120 cells") == 2
    for show in SECTIONS.values():
        assert results_page.MISSING not in show(complete).replace("| – |\n\ncommon", "")
    gap = results_page.overview(without(complete, "mutag", "egin", "paper"))
    assert "119 of 120 cells" in gap and "| EGIN | – (92.5) |" in gap


def test_cells_below_the_paper_are_listed(complete):
    assert results_page.below_paper(complete).startswith("0 of 72 cells")
    low = make_cell(complete, "mutag", "egin", "paper", 0.893)  # published: 92.5 ± 3.1
    near = make_cell(complete, "mutag", "egin_c", "paper", 0.902)  # 92.8 ± 2.7
    listed = results_page.below_paper(
        replace(complete, cells=complete.cells | {c.command: c for c in (low, near)})
    )
    assert listed.startswith("1 of 72 cells") and "| MUTAG | EGIN | 92.5 ± 3.1 | 89.3 ± 1.4 |" in listed


def test_claims_follow_the_numbers(complete):
    """The made-up cells are the published means: the differences and the order are those of the paper."""
    differences = [
        PUBLISHED["EGIN", name].mean - PUBLISHED["GIN", name].mean for name in complete.datasets.values()
    ]
    text = claims.egin_against_gin(complete)
    assert f"over 12 of 12 datasets: mean difference +{np.mean(differences):.1f} (" in text
    assert "better on 12" in text
    assert "τ = 1.00" in claims.ranks(complete)
    equal = make_cell(complete, "mutag", "egin", "ten_fold", 0.874)  # GIN's mean
    assert "equivalent on 1" in claims.egin_against_gin(
        replace(complete, cells=complete.cells | {equal.command: equal})
    )
    assert "| mean (95 % interval) | +0.0 (+0.0 to +0.0) |" in claims.protocol_worth(complete)


def test_worth_of_edges_is_what_is_lost_without_them(complete):
    lines = edge_worth.edge_worth(complete).splitlines()
    assert lines[0].startswith("12 of 12 datasets")
    (mutag,) = [line for line in lines if line.startswith("| MUTAG")]
    assert mutag.count("+39.0 ± 0.0 matters") == 4  # the published 89.0 %, and 50 %
    (complete_graphs,) = [line for line in lines if line.startswith("| COX2_MD")]
    assert "not applicable" in complete_graphs
    without_structure = edge_worth.edge_worth(
        without(complete, "mutag", "egin_e", "ten_fold", "dataset.structure=none")
    )
    assert without_structure.startswith("11 of 12 datasets")


def test_interval_of_a_difference_counts_both_spreads():
    scores = [0.8, 0.9] * 5
    difference, low, high = results_page.difference_to_paper(scores, 1 / 9, PUBLISHED["GIN", "MUTAG"])
    own = results_page.interval(scores, 1 / 9)
    assert difference == pytest.approx(0.85 - 0.874) and high - low > own[1] - own[0]


def test_picture_is_drawn_with_gaps(results, complete, tmp_path):
    some = replace(complete, datasets={name: results.datasets[name] for name in ("mutag", "tox21_ar")})
    draw_results(without(some, "mutag", "egin", "ten_fold"), tmp_path / "some.png")
    assert (tmp_path / "some.png").stat().st_size > 10_000


def test_canaries_keep_their_digits(numbers):
    """Under every arithmetic: `reproducible=avx2` is what the cells were computed with."""
    try:
        canaries = load_canaries(RESULTS / "canaries.json")
    except ConfigError as other_versions:
        pytest.skip(str(other_versions))
    assert tuple(canaries) == CANARIES
    here = {command: digits for command, digits in canaries.items() if is_available(command)}
    assert here and find_changed(here) == []


def is_available(command):
    try:
        find_raw(Results.load(ROOT).datasets[command.split()[2].removeprefix("dataset=")], url=None)
        return True
    except EginError:
        return False
