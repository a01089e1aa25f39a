"""Results in documents cannot go stale unseen: each stands in a block, and its command and layout are still what they were."""

import importlib.util
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from running import ROOT

from egin_dgl.cli.main import COMMANDS
from egin_dgl.cli.user_config import search_path, split_config_dir
from egin_dgl.errors import ConfigError, TrainingError
from egin_dgl.reporting.documents.blocks import (
    Block,
    as_printed,
    find_blocks,
    load_register,
    outside_blocks,
    put_block,
    skeleton,
)
from egin_dgl.reporting.documents.remake import in_folder, make_block, missing_data, words_of

REGISTER = load_register(ROOT / "docs" / "blocks.yaml")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
RESULT = re.compile(r"\d+\.\d+ ?(?:±|%)|± ?\d|\bp = 0\.\d")
every_block = pytest.mark.parametrize("block", REGISTER.values(), ids=REGISTER)


def test_documents_and_register_have_the_same_blocks_with_the_same_commands():
    written = {
        (file, name): block.commands
        for file, text in PAGES.items()
        for name, block in find_blocks(text).items()
    }
    assert written == {(block.file, name): block.commands for name, block in REGISTER.items()}


@pytest.mark.parametrize("file", PAGES)
def test_every_result_stands_in_a_block(file):
    assert RESULT.findall(outside_blocks(PAGES[file])) == []


def test_what_counts_as_a_result():
    assert all(RESULT.search(text) for text in ("88.3 ± 6.3", "88±6", "allow 90.1 %", "p = 0.04"))
    assert not any(RESULT.search(text) for text in ("95 % interval", "lr=0.003", "mean ± std", "torch 2.2.1"))


def typed_commands():
    """Training commands that documents show in full, and those of the register."""
    shown = re.findall(
        r"^(?:python scripts/train\.py|egin train) .*=.*$", "\n".join(PAGES.values()), re.MULTILINE
    )
    return list(dict.fromkeys([*shown, *(run for block in REGISTER.values() for run in block.runs)]))


@pytest.mark.parametrize("command", typed_commands())
def test_training_commands_are_of_options_that_exist(command):
    own, words = split_config_dir(shlex.split(command, comments=True)[2:])
    words = [word for word in words if word != "-m"]
    of_training = [word for word in words if not word.startswith(("hydra", "resume="))]
    chosen = []
    for option in OverridesParser.create().parse_overrides(of_training):
        if option.is_discrete_sweep():
            chosen.append([f"{option.get_key_element()}={value}" for value in option.sweep_string_iterator()])
        elif option.is_sweep_override():
            chosen.append([f"{option.get_key_element()}={option.value().start}"])
        else:
            chosen.append([option.input_line])
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        for turn in range(max(map(len, chosen), default=1)):  # every value once, not every combination
            choice = [values[turn % len(values)] for values in chosen]
            assert compose("train", [*search_path(own and ROOT / own), *choice])


def module_of(script):
    """Of a script that calls a command of `egin`, the command."""
    if Path(script).stem in COMMANDS:
        return importlib.import_module(f"egin_dgl.cli.commands.{Path(script).stem}")
    spec = importlib.util.spec_from_file_location("script_of_a_block", ROOT / script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("command", sorted({block.show for block in REGISTER.values() if block.show}))
def test_commands_that_show_are_of_options_that_exist(command):
    _, script, *words = shlex.split(command)
    options = module_of(script).parse(words)
    datasets = [word for word in getattr(options, "words", []) if word.startswith("dataset=")]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        for name in (name for word in datasets for name in word.removeprefix("dataset=").split(",")):
            assert compose("train", [f"dataset={name}"])


@every_block
def test_its_layout_is_what_its_commands_print(block, tmp_path, unwatched):
    written = find_blocks(PAGES[block.file])[block.name]
    if not written.made:
        pytest.skip(written.provenance)
    if reason := missing_data(block):
        pytest.skip(reason)
    runs = tuple(f"{run} {block.tiny} trainer.fold_workers=1" for run in block.runs)
    tiny = replace(block, runs=runs, show=block.show and f"{block.show} {block.tiny_show}")
    with unwatched():  # its numbers are masked
        _, content = make_block(tiny, ROOT, tmp_path / "runs")
    assert sorted(skeleton(content)) == sorted(skeleton(written.content))


TEXT = """before
<!-- begin one: made by python scripts/docs.py one
python scripts/train.py model=gin
seed 0, torch 2 -->
| old |
<!-- end one -->
after
"""
ONE = Block("one", "page.md", runs=("python scripts/train.py model=egin",))


def test_only_what_is_between_the_markers_changes():
    text = put_block(TEXT, ONE, "seed 1, torch 3", "| new |\n")
    expected = TEXT.replace("model=gin", "model=egin").replace("seed 0, torch 2", "seed 1, torch 3")
    assert text == expected.replace("| old |", "| new |")
    assert put_block(text, ONE, "seed 1, torch 3", "| new |\n") == text
    assert outside_blocks(TEXT) == "before\n\nafter\n"


@pytest.mark.parametrize(
    "broken",
    [
        TEXT.replace("<!-- end one -->", ""),
        TEXT.replace("<!-- begin one", "<!-- begin two"),
        TEXT + TEXT,
        TEXT + "<!-- end two -->\n",
    ],
)
def test_broken_markers_are_told(broken):
    with pytest.raises(ConfigError, match="block"):
        find_blocks(broken)


def test_a_block_without_a_place_and_a_wrong_entry_are_told(tmp_path):
    with pytest.raises(ConfigError, match="page.md has no block two"):
        put_block(TEXT, replace(ONE, name="two"), "", "")
    for entry, message in {
        "one: {file: README.md, run: [x]}": "one has run; valid: .*runs",
        "one: {file: README.md}": "needs a file, and runs or show",
    }.items():
        (tmp_path / "blocks.yaml").write_text(entry)
        with pytest.raises(ConfigError, match=message):
            load_register(tmp_path / "blocks.yaml")


def test_a_layout_cuts_what_changes_from_run_to_run_and_keeps_the_first_part_of_a_file():
    run = replace(ONE, fenced=True, without=(r"^[\d,]+ parameters, .*\n",))
    assert as_printed("\n table  \n1,234 parameters, 3.2 s, in x\n", run) == "```\n table\n```\n"
    file = replace(ONE, take="table.md", without=(r", [+−]\d+\.\d(?=\))",))
    assert (
        as_printed("### Title\n\n| 1.0 (2.0, −1.0) |\n\n### More\n\n| 3 |\n", file)
        == "Title\n\n| 1.0 (2.0) |\n"
    )


def test_a_skeleton_has_names_and_columns_but_no_numbers():
    rows = ["│ EGIN │ 1.0 ± 2.0 │", "│ GIN │ 1.0 ± 2.0 │"]
    same = skeleton("\n".join([*rows, "EGIN is ahead."])) == skeleton(
        "\n".join([*rows, "GIN is."]).replace("1", "33")
    )
    assert same and len(skeleton("\n".join(rows))) == 2
    run = "  last   87.8 ± 7.1   each   nothing\n\nmcc 0.7,\nauroc 0.9\nchosen in 2 folds: x"
    assert (
        skeleton(run)
        == skeleton("  last   7.8 ± 17.1   3   nothing\n\nmcc −0.1, auroc 0.9")
        != skeleton(run[3:])
    )
    assert skeleton(rows[0]) != skeleton("│ EGIN │ 1.0 │ 2.0 │") != skeleton("│ GIN │ 1.0 │ 2.0 │")


def test_runs_are_kept_gone_on_with_and_thrown_away_when_their_command_changes(numbers, tmp_path):
    small = "dataset=bonds dataset.graphs=12 cv=holdout trainer.epochs=1 trainer.fold_workers=1 model.hidden_dim=4"
    block = replace(ONE, runs=(f"python scripts/train.py {small} seed=5",), fenced=True)
    folder = tmp_path / "one"
    made_with, content = make_block(block, ROOT, folder)
    assert made_with.startswith("seed 5, egin-dgl ") and "EGIN-E on bonds" in content
    ended = (folder / "0" / "summary.json").stat().st_mtime_ns
    assert make_block(block, ROOT, folder) == (made_with, content)
    assert (folder / "0" / "summary.json").stat().st_mtime_ns == ended

    words = words_of(block.runs[0], ROOT)
    assert in_folder(words, folder / "0") == [*words[:2], f"resume={folder / '0'}"]
    assert in_folder(words, folder / "1")[-1] == f"hydra.run.dir={folder / '1'}"
    assert in_folder([*words, "-m"], folder / "1")[-1] == f"hydra.sweep.dir={folder / '1'}"

    wrong = replace(block, runs=(f"{block.runs[0]} model.num_layers=0",))
    with pytest.raises(TrainingError, match="ended with exit code 1"):
        make_block(wrong, ROOT, folder)
    assert not (folder / "0" / "summary.json").exists()
