"""Packages import in one direction only, and one package alone knows the files of a run."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "egin_dgl"
BASE_MODULES = (
    "errors",
    "files",
    "openblas",
    "reproducibility",
    "backend",
    "options",
    "terminal",
    "parallel",
)  # single files that every package may import
PACKAGES = (
    "data",
    "ewl",
    "layers",
    "models",
    "fast",
    "evaluation",
    "tasks",
    "runs",
    "training",
    "inference",
    "reporting",
    "cli",
    "api",
)
ORDER = (*BASE_MODULES, *PACKAGES)

FILES = ("run.json", "folds.json", "summary.json", "sweep.json", "last.pt", "best.safetensors", "history.csv")
FILES += ("error.txt", "overrides.yaml", "hydra.yaml", "config.yaml")
# What the dispatcher calls of a command, and how most read their words.
A_COMMAND_HAS = {"main", "parse"}

modules = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def package_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    """The packages that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("egin_dgl.") and name.split(".")[1] in ORDER:
                yield name.split(".")[1]


def strings(path):
    """The texts that a file computes with: docstrings and messages are not among them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    messages = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            messages.update(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in messages:
            yield node.value


@pytest.mark.parametrize("path", modules, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    mine = package_of(path)
    assert mine in ORDER, f"{mine} has no place in the order of imports"
    against = {package for package in imports(path) if ORDER.index(package) > ORDER.index(mine)}
    assert not against, f"{mine} must not import {', '.join(against)}"


@pytest.mark.parametrize("path", modules, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_package_of_runs_knows_the_names_of_their_files(path):
    if package_of(path) == "runs":
        return
    named = {name for name in FILES if any(text == name for text in strings(path))}
    assert not named


@pytest.mark.parametrize("path", modules, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_imports_dgl_before_it_is_needed(path):
    tree = ast.parse(path.read_text(encoding="utf-8")).body
    named = [node.module for node in tree if isinstance(node, ast.ImportFrom)]
    named += [alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names]
    assert "dgl" not in {str(name).split(".")[0] for name in named}


def test_the_page_shows_the_same_order():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = re.search(r"```\n(data → .*?)\n```", page).group(1)
    assert tuple(picture.split(" → ")) == PACKAGES


def test_what_the_page_names_is_there():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(egin_dgl/[\w/]+(?:\.py)?|conf/[\w/]+(?:\.yaml)?|scripts/\w+\.py)`", page):
        assert (PACKAGE.parent / name).exists(), name
    for file, function in re.findall(r"`(egin_dgl/[\w/]+\.py)`, `(\w+)`", page):
        text = (PACKAGE.parent / file).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:def|class) {function}\b|^{function} = ", text, re.MULTILINE), (
            file,
            function,
        )


def test_a_name_found_by_search_is_the_thing():
    """No two public functions or classes of the package have the same name."""
    places = {}
    for path in modules:
        expected = A_COMMAND_HAS if path.parent == PACKAGE / "cli" / "commands" else ()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            named = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if named and node.name not in expected:
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
