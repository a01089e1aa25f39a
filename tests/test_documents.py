"""Documents are checked against the code: their commands parse, and their blocks match the register and its commands."""

import importlib.util
import itertools
import re
import runpy
import shlex
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
import running
from docgen import remake
from docgen.blocks import (
    Block,
    find_blocks,
    format_output,
    load_register,
    mask_numbers,
    remove_blocks,
    replace_block,
)
from docgen.remake import make_block, missing_data, to_arguments, with_run_dir
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from running import ROOT

from egin_dgl.cli.arguments import parse_options
from egin_dgl.cli.config_dirs import search_path, split_config_dir
from egin_dgl.cli.main import COMMANDS
from egin_dgl.errors import ConfigError, TrainingError

REGISTER = load_register(ROOT / "docs" / "blocks.yaml")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
RESULT = re.compile(r"\d+\.\d+ ?(?:±|%)|± ?\d|\bp = 0\.\d")
CALL = remake.call
TRAINED_HERE = ("first_table",)  # of the blocks that train: the others are slow


def test_documents_and_register_have_the_same_blocks_and_commands():
    written = {
        (file, name): block.commands
        for file, text in PAGES.items()
        for name, block in find_blocks(text).items()
    }
    assert written == {(block.file, name): block.commands for name, block in REGISTER.items()}


@pytest.mark.parametrize("file", PAGES)
def test_every_result_is_in_a_block(file):
    assert RESULT.findall(remove_blocks(PAGES[file])) == []


def test_pattern_of_results():
    assert all(RESULT.search(text) for text in ("88.3 ± 6.3", "88±6", "allow 90.1 %", "p = 0.04"))
    assert not any(RESULT.search(text) for text in ("95 % interval", "lr=0.003", "mean ± std", "torch 2.2.1"))


def train_commands():
    """Complete training commands in documents and in the register."""
    shown = re.findall(
        r"^(?:python scripts/train\.py|egin train) .*=.*$", "\n".join(PAGES.values()), re.MULTILINE
    )
    return list(dict.fromkeys([*shown, *(run for block in REGISTER.values() for run in block.runs)]))


@pytest.fixture(scope="module")
def composed():
    """The configuration of these overrides, composed once."""
    done = {}

    def get(*overrides):
        if overrides not in done:
            with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
                done[overrides] = compose("train", list(overrides))
        return done[overrides]

    return get


@pytest.mark.parametrize("command", train_commands())
def test_training_commands_compose(command, composed):
    config_dir, arguments = split_config_dir(shlex.split(command, comments=True)[2:])
    overrides = [text for text in arguments if text != "-m" and not text.startswith(("hydra", "resume="))]
    choices = []
    for option in OverridesParser.create().parse_overrides(overrides):
        if option.is_discrete_sweep():
            values = [f"{option.get_key_element()}={value}" for value in option.sweep_string_iterator()]
        elif option.is_sweep_override():
            values = [f"{option.get_key_element()}={option.value().start}"]
        else:
            values = [option.input_line]
        choices.append(values)
    for turn in range(max(map(len, choices), default=1)):  # every value once, not every combination
        chosen = [values[turn % len(values)] for values in choices]
        assert composed(*search_path(config_dir and ROOT / config_dir), *chosen)


def load_parser(script):
    """`parse` of a script, or of the `egin` command that it calls."""
    name = Path(script).stem
    if name in COMMANDS:
        module = importlib.import_module(f"egin_dgl.cli.commands.{name}")
        kinds = {"predict": "PredictOptions", "explain": "ExplainOptions"}
        return partial(parse_options, getattr(module, kinds[name])) if name in kinds else module.parse
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.parse


@pytest.mark.parametrize("command", sorted({block.show for block in REGISTER.values() if block.show}))
def test_other_commands_parse(command, composed):
    _, script, *arguments = shlex.split(command)
    load_parser(script)(arguments)
    for names in (text.removeprefix("dataset=") for text in arguments if text.startswith("dataset=")):
        assert all(composed(f"dataset={name}") for name in names.split(","))


def is_slow(block):
    trains = block.long or block.name in ("zoo", "pairs") or (block.runs and block.name not in TRAINED_HERE)
    return trains and not block.same_layout_as


def cases():
    for name, block in REGISTER.items():
        yield pytest.param(block, id=name, marks=[pytest.mark.slow] if is_slow(block) else [])


@pytest.fixture(scope="module")
def runs_directory(tmp_path_factory):
    """One directory for blocks of the same runs."""
    return cache(lambda runs: tmp_path_factory.mktemp("runs") / "made")


@pytest.mark.parametrize("block", cases())
def test_commands_print_the_layout_of_their_block(block, runs_directory, unwatched, monkeypatch, capsys):
    written = find_blocks(PAGES[block.file])[block.name]
    layout = mask_numbers(written.content)
    if other := block.same_layout_as:
        assert layout == mask_numbers(find_blocks(PAGES[REGISTER[other].file])[other].content)
        return
    if not written.is_made:
        pytest.skip(written.provenance)
    if reason := missing_data(block):
        pytest.skip(reason)
    monkeypatch.setattr(remake, "call", lambda *args, **options: call_here(capsys, *args, **options))
    runs = tuple(f"{run} {block.tiny} trainer.fold_workers=1" for run in block.runs)
    tiny = replace(block, runs=runs, show=block.show and f"{block.show} {block.tiny_show}")
    with unwatched():  # its numbers are masked
        _, content = make_block(tiny, ROOT, runs_directory(runs or block.name))
    made = mask_numbers(content)
    if block.some_rows:  # the others differ in the names of datasets and models only
        assert made[0] == layout[0] and 2 <= len(made) < len(layout) and set(made) <= set(layout)
    else:
        assert sorted(made) == sorted(layout)


def call_here(capsys, arguments, root, columns=None):
    """A script in this process; training without `reproducible=any`, which would need a new one."""
    script, *options = arguments[1:]
    if (
        Path(script).stem in ("benchmark", "cost") and "molecules" not in options
    ):  # they measure a process of their own
        return CALL(arguments, root, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns or 80))
        if script.endswith("train.py"):
            folder = Path(options[-1].partition("=")[2])
            overrides = [
                option for option in options[:-1] if not option.startswith(("reproducible=", "hydra"))
            ]
            if "-m" in overrides:
                train_grid(folder, *(option for option in overrides if option != "-m"))
            elif options[-1].startswith("resume="):
                running.resume_here(folder)
            else:
                running.run_here(folder, *overrides)
        else:
            patch.setattr(sys, "argv", [script, *(word for word in options if word != "reproducible=any")])
            patch.chdir(root)
            with suppress(SystemExit):
                runpy.run_path(script, run_name="__main__")
    return capsys.readouterr().out


def train_grid(folder, *overrides):
    """The jobs of a sweep, one after the other."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    choices = [
        list(option.sweep_string_iterator()) if option.is_sweep_override() else [option.get_value_string()]
        for option in parsed
    ]
    for number, values in enumerate(itertools.product(*choices)):
        job = [f"{option.get_key_element()}={value}" for option, value in zip(parsed, values, strict=True)]
        running.run_here(folder / str(number), *job)


TEXT = """before
<!-- begin one: made by python scripts/docs.py one
python scripts/train.py model=gin
seed 0, torch 2 -->
| old |
<!-- end one -->
after
"""
ONE = Block("one", "page.md", runs=("python scripts/train.py model=egin",))


def test_replacing_a_block_leaves_the_rest_of_the_page():
    text = replace_block(TEXT, ONE, "seed 1, torch 3", "| new |\n")
    expected = TEXT.replace("model=gin", "model=egin").replace("seed 0, torch 2", "seed 1, torch 3")
    assert text == expected.replace("| old |", "| new |")
    assert replace_block(text, ONE, "seed 1, torch 3", "| new |\n") == text
    assert remove_blocks(TEXT) == "before\n\nafter\n"


@pytest.mark.parametrize(
    "broken",
    [
        TEXT.replace("<!-- end one -->", ""),
        TEXT.replace("<!-- begin one", "<!-- begin two"),
        TEXT + TEXT,
        TEXT + "<!-- end two -->\n",
    ],
)
def test_broken_markers_are_an_error(broken):
    with pytest.raises(ConfigError, match="block"):
        find_blocks(broken)


def test_a_block_without_markers_and_an_invalid_entry_are_errors(tmp_path):
    with pytest.raises(ConfigError, match="page.md has no block two"):
        replace_block(TEXT, replace(ONE, name="two"), "", "")
    for entry, message in {
        "one: {file: README.md, run: [x]}": "one has run; valid: .*runs",
        "one: {file: README.md}": "needs a file, and runs or show",
    }.items():
        (tmp_path / "blocks.yaml").write_text(entry)
        with pytest.raises(ConfigError, match=message):
            load_register(tmp_path / "blocks.yaml")


def test_output_is_formatted_without_times_or_as_the_first_section_of_a_file():
    run = replace(ONE, fenced=True, without=(r"^[\d,]+ parameters, .*\n",))
    assert format_output("\n table  \n1,234 parameters, 3.2 s, in x\n", run) == "```\n table\n```\n"
    file = replace(ONE, take="table.md", without=(r", [+−]\d+\.\d(?=\))",))
    sections = "### Title\n\n| 1.0 (2.0, −1.0) |\n\n### More\n\n| 3 |\n"
    assert format_output(sections, file) == "Title\n\n| 1.0 (2.0) |\n"


def test_masked_numbers_leave_names_and_columns():
    rows = ["│ EGIN │ 1.0 ± 2.0 │", "│ GIN │ 1.0 ± 2.0 │"]
    one, other = "\n".join([*rows, "EGIN is ahead."]), "\n".join([*rows, "GIN is."]).replace("1", "33")
    assert mask_numbers(one) == mask_numbers(other) and len(mask_numbers("\n".join(rows))) == 2
    run = "  last   87.8 ± 7.1   each   nothing\n\nmcc 0.7,\nauroc 0.9\nchosen in 2 folds: x"
    assert mask_numbers(run) == mask_numbers("  last   7.8 ± 17.1   3   nothing\n\nmcc −0.1, auroc 0.9")
    assert mask_numbers(run) != mask_numbers(run[3:])
    assert (
        mask_numbers(rows[0]) != mask_numbers("│ EGIN │ 1.0 │ 2.0 │") != mask_numbers("│ GIN │ 1.0 │ 2.0 │")
    )


def test_training_commands_get_a_directory_or_resume_it(tmp_path):
    arguments = to_arguments(ONE.runs[0], ROOT)
    assert with_run_dir(arguments, tmp_path)[-1] == f"hydra.run.dir={tmp_path}"
    assert with_run_dir([*arguments, "-m"], tmp_path)[-1] == f"hydra.sweep.dir={tmp_path}"
    (tmp_path / "run.json").write_text("{}")
    assert with_run_dir(arguments, tmp_path) == [*arguments[:2], f"resume={tmp_path}"]


@pytest.mark.slow
def test_finished_runs_are_reused_and_deleted_when_their_command_changes(numbers, tmp_path):
    small = "dataset=bonds dataset.graphs=12 cv=holdout trainer.epochs=1 trainer.fold_workers=1 model.hidden_dim=4"
    block = replace(ONE, runs=(f"python scripts/train.py {small} seed=5",), fenced=True)
    folder = tmp_path / "one"
    provenance, content = make_block(block, ROOT, folder)
    assert provenance.startswith("seed 5, egin-dgl ") and "EGIN-E on bonds" in content
    ended = (folder / "0" / "summary.json").stat().st_mtime_ns
    assert make_block(block, ROOT, folder) == (provenance, content)
    assert (folder / "0" / "summary.json").stat().st_mtime_ns == ended
    wrong = replace(block, runs=(f"{block.runs[0]} model.num_layers=0",))
    with pytest.raises(TrainingError, match="failed with exit code 1"):
        make_block(wrong, ROOT, folder)
    assert not (folder / "0" / "summary.json").exists()
