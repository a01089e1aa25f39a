"""Retired names and phrases do not occur in code, options, messages and documents."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


def word_set(text: str) -> set[str]:
    return set(text.split())


# Names of the package that have a conventional replacement. They may not occur at all.
RETIRED_NAMES = word_set(
    """
    Answers Bags EvaluatedModel InTraining InTurn Links Looked Looking MappedDataset Share SideBySide Such
    SumLayer SummedEdges Unfit answer_file arrays_of beyond_all check_scores heeding_signals judged sayable
    scores_of select_by select_window started_with take_step train_fold use_edge_features whole_epochs without_compiler
    """
)

# Words that are fine as a variable or in another library, but not as a function or class of this package.
RETIRED_DEFINITIONS = word_set(
    """
    Cell alone around behind claim closed ending enter fitted guarded judge look meant mend stands understood
    """
)

RETIRED_MODULES = word_set(
    """
    answers batch_statistics cells cutting declared distinct door engine evaluated forking fresh from_graphs
    fused_pass interruption keywords links looking mapped named nearest own preloaded ranges replayed
    run_folder shipped shortcut streaming sum_layer tracking wellformed wording words writing
    """
)

# Options and values under their former names, where they cannot be mistaken for an attribute in code.
RETIRED_OPTIONS = [
    r"trainer\.average\b",
    r"trainer\.statistics\b",
    r"trainer\.workers\b",
    r"trainer\.warmup\b",
    r"trainer\.select_\w+",
    r"bn_statistics=exact\b",
    r"model\.layers=",
    r"dataset\.part\b",
    r"dataset\.unreadable\b",
    r"dataset\.label\b",
    r"unreadable=(?:refuse|skip)\b",
    r"\bcv=final\b",
    r"\begin zoo\b",
]
RETIRED_KEYS = word_set("select_by select_window average statistics warmup workers layers unreadable label")

# Regular expressions; a space also matches a line break, a comment sign or an underscore.
RETIRED_PHRASES = [
    r"(?:tell|tells|telling|told)(?: \w+){0,3} apart",
    "answers and reasons",
    "same digits elsewhere",
    "recipe before",
    "averaged weights",
    "exact statistics",
    r"(?:go|goes|going|gone|went) on(?: with)?",
    "said again",
    r"words of (?:a|the) command",
    "more than chance may do",
    "a measured number",
    "make classes of it",
    "are answered so",
    "only harmless ones",
    "chosen by nobody",
    r"(?:train|training|validation|test) parts?",
    r"parts? of (?:a|the|each) folds?",
    "put aside",
    "calm",
]

SEPARATOR = r"(?:_|[ \t]*\n[ \t]*(?:#[ ]*)?|[ ]+)"

# Fine in code and messages; documents have a better word.
RETIRED_IN_DOCUMENTS = ["folders?", "jumps?", "told", "said"]

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = [
    path
    for directory in ("egin_dgl", "scripts", "tests", "examples")
    for path in sorted((ROOT / directory).rglob("*.py"))
    if path != Path(__file__).resolve()
]
YAML = [*sorted((ROOT / "conf").rglob("*.yaml")), *sorted((ROOT / "docs").glob("*.yaml"))]
TEXTS = [*DOCUMENTS, *PYTHON, *YAML, ROOT / "Makefile"]


def find(path: Path, pattern: str, flags: int = 0) -> Iterator[str]:
    """Every match as "file:line: text"."""
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(pattern, text, flags):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path.relative_to(ROOT)}:{line}: {' '.join(match.group().split())}"


def phrase(words: str) -> str:
    """A pattern for a phrase that may be wrapped, be part of an identifier, and start with a capital letter."""
    return rf"(?<![a-zA-Z])(?:{words.replace(' ', SEPARATOR)})(?![a-zA-Z])"


def names(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Every identifier of a Python file with its line, and whether it is a function or class definition."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno, True
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno, False
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno, False
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno, False
        elif isinstance(node, ast.alias):
            yield node.name.split(".")[-1], node.lineno, False


def retired_names() -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in PYTHON
        for name, line, defined in names(path)
        if name in RETIRED_NAMES or (defined and name in RETIRED_DEFINITIONS)
    ]


def retired_modules() -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:1: module {path.stem}"
        for path in PYTHON
        if path.is_relative_to(ROOT / "egin_dgl") and path.stem in RETIRED_MODULES
    ]


def retired_options() -> list[str]:
    found = [hit for path in TEXTS for pattern in RETIRED_OPTIONS for hit in find(path, pattern)]
    for path in sorted((ROOT / "conf").rglob("*.yaml")):
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        levels = [settings, *(value for value in settings.values() if isinstance(value, dict))]
        keys = {key for level in levels for key in level} & RETIRED_KEYS
        found += [f"{path.relative_to(ROOT)}:1: {key}" for key in sorted(keys)]
    return found


def retired_phrases() -> list[str]:
    found = [
        hit for path in TEXTS for words in RETIRED_PHRASES for hit in find(path, phrase(words), re.IGNORECASE)
    ]
    return found + [
        hit for path in DOCUMENTS for words in RETIRED_IN_DOCUMENTS for hit in find(path, phrase(words))
    ]


@pytest.mark.parametrize("search", [retired_names, retired_modules, retired_options, retired_phrases])
def test_retired_vocabulary_is_absent(search):
    hits = search()
    assert not hits, "\n".join(hits)


def test_searches_find_what_they_are_for(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "page.md"
    path.write_text(
        "Graphs are told\n  # apart. test_that_it_goes_on, trainer.workers=2\nThe calmest train_parts\n"
    )
    found = [hit for words in RETIRED_PHRASES for hit in find(path, phrase(words), re.IGNORECASE)]
    assert found == ["page.md:1: told # apart", "page.md:2: goes_on", "page.md:3: train_parts"]
    assert [hit for pattern in RETIRED_OPTIONS for hit in find(path, pattern)] == [
        "page.md:2: trainer.workers"
    ]
    path.write_text("class Looking:\n    def look(self, look):\n        return self.select_by\n")
    assert [
        name
        for name, _, defined in names(path)
        if name in RETIRED_NAMES or (defined and name in RETIRED_DEFINITIONS)
    ] == [
        "Looking",
        "look",
        "select_by",
    ]
