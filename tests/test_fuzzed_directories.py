"""Every key and value of the files of a run or sweep directory, changed in ways that an attacker or an accident would choose:
one sentence or the right result, and no code, no write elsewhere, no connection, no control character on the terminal."""

import copy
import json
import logging
import random
import shutil
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from egin_dgl.cli import app, entrypoint
from egin_dgl.cli.entrypoint import describe_failure
from egin_dgl.cli.overrides import parse_arguments
from egin_dgl.cli.refit import plan_refit
from egin_dgl.cli.resume import resume
from egin_dgl.errors import EginError, TrainingError
from egin_dgl.inference.trained_run import load_run
from egin_dgl.reporting.many_runs.report import make_report
from egin_dgl.runs.fold_dir import FoldDir
from egin_dgl.runs.reader import find_runs
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir, SweepJob, SweepRecord

FORBIDDEN = (
    "subprocess.",
    "os.exec",
    "os.posix_spawn",
    "os.system",
    "os.fork",
    "socket.",
    "pickle.find_class",
    "ctypes.dlopen",
)
WRITES = (
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.symlink",
    "os.link",
    "os.chmod",
    "os.truncate",
)
CANARY = "/tmp/egin_canary_of_a_test"  # never exists
NESTED = eval("[" * 90 + "]" * 90)
VALUES = [
    *(
        None,
        True,
        -1,
        0,
        7,
        2.5,
        10**30,
        1e308,
        float("nan"),
        float("inf"),
        [],
        {},
        [None],
        {"": None},
        NESTED,
    ),
    *(
        "",
        "x",
        "0",
        "../../../x",
        CANARY,
        "/dev/zero",
        "http://127.0.0.1:9/x",
        "os.mkdir",
        "antigravity",
        "a" * 5000,
    ),
    *(
        "\x1b[2J\x07",
        "\u202e",
        "\ud800",
        "line\nbreak",
        "[/x]",
        "${oc.env:HOME}",
        "${now:%Y}",
        "???",
        "cuda:7",
        "%s{0}",
    ),
    *(
        {"_target_": "os.mkdir", "path": CANARY},
        [{"_target_": "os.mkdir", "path": CANARY}],
        {"x._target_": ["os.mkdir"]},
    ),
]
KEYS = [
    "",
    "x",
    "_target_",
    "x._target_",
    "_args_",
    "_partial_",
    "a.b",
    "line\nbreak",
    "\x1b[2J",
    "__class__",
    "0",
    "${x}",
    "self",
]

COUNTS = pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.slow)])

guarded: list | None = None  # what the audit hook has seen, while it watches
allowed = ""


def watch(event, arguments):
    """Note what no foreign directory may cause."""
    if guarded is None:
        return
    if event.startswith(FORBIDDEN) or event == "import" and arguments[0] == "antigravity":
        guarded.append((event, arguments))
    elif (
        event == "open"
        and isinstance(arguments[1], str)
        and set(arguments[1]) & set("wax+")
        or event in WRITES
    ):
        note_write(event, arguments[0])


def note_write(event, path):
    if isinstance(path, (str, bytes, Path)):
        place = str(Path(path.decode() if isinstance(path, bytes) else path).absolute())
        if not place.startswith((allowed, "/dev/null")):
            guarded.append((event, place))


@contextmanager
def audited(directory):
    global guarded, allowed
    if not getattr(sys, "egin_fuzz_hook", False):
        sys.addaudithook(watch)  # for the life of the process
        sys.egin_fuzz_hook = True
    guarded, allowed = [], str(directory)
    seen = guarded
    try:
        yield seen
    finally:
        guarded = None


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """What a command sets for its process."""
    monkeypatch.setattr(entrypoint, "active_dir", None)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def places(content, path=()):
    """The path of every key and value."""
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, value in list(items)[:60]:
        yield (*path, key)
        yield from places(value, (*path, key))


def mutate(content, rng):
    """A copy with one to three changes."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        *path, key = rng.choice(list(places(content)))
        inner = content
        for step in path:
            inner = inner[step]
        way = rng.randrange(6)
        if way == 0:
            del inner[key]
        elif way == 1 and isinstance(inner, dict):
            inner[rng.choice(KEYS)] = inner.pop(key)
        elif way == 2 and isinstance(inner, dict):
            inner[rng.choice(KEYS)] = rng.choice(VALUES)
        else:
            inner[key] = copy.deepcopy(rng.choice(VALUES))
        if not content:
            break
    for seal in ("crc32", "settings_crc32"):  # it protects from damage, not from malice
        content.pop(seal, None) if isinstance(content, dict) else None
    return content


def refuse_to_train(*_, **__):
    raise TrainingError("reached the training of folds")


ROUTES = {
    "resume": lambda path: resume(parse_arguments([f"resume={path}"])),
    "refit": lambda path: plan_refit(RunDir(path)),
    "predict": lambda path: load_run(path),
    "table": lambda path: str(make_report(find_runs([path]))),
}


def attempt(name, path, capsys, tmp_path, change):
    """Run one route; anything but a result or one sentence fails."""
    message = ""
    with audited(tmp_path) as seen, patch.object(app, "train_folds", refuse_to_train):
        try:
            ROUTES[name](path)
        except (EginError, SystemExit) as error:
            message = describe_failure(error)  # as it is printed
    printed = capsys.readouterr()
    text = message + printed.out + printed.err
    assert not seen, (name, change, seen)
    assert not {c for c in text if c != "\n" and (ord(c) < 32 or c in "\x7f\u202e")}, (name, change, text)
    assert "\n" not in message.strip(), (name, change, message)


def fuzz(count, file, routes, path, read, write, capsys, tmp_path):
    """Try many changes of one file, and list every distinct fall."""
    good, rng, falls = read(), random.Random(f"{file} {count}"), {}
    for _ in range(count):
        changed = mutate(good, rng)
        write(changed)
        for name in routes:
            try:
                attempt(name, path, capsys, tmp_path, changed)
            except AssertionError as error:
                falls.setdefault((name, "assertion"), str(error)[:2000])
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                falls.setdefault(
                    (name, repr(error)[:100], place.filename, place.lineno), json.dumps(changed)[:2000]
                )
    assert not falls, "\n".join(f"{key}: {change}" for key, change in falls.items())


@COUNTS
@pytest.mark.parametrize("file", ["run.json", "folds.json", "summary.json"])
def test_files_of_a_run(small_run, file, count, capsys, tmp_path):
    path = shutil.copytree(small_run, tmp_path / "run")
    target = path / file
    fuzz(
        count,
        file,
        ROUTES,
        path,
        lambda: json.loads(target.read_text()),
        lambda new: target.write_text(json.dumps(new)),
        capsys,
        tmp_path,
    )


@COUNTS
def test_metadata_of_weights(small_run, count, capsys, tmp_path):
    path = shutil.copytree(small_run, tmp_path / "run")
    fold = FoldDir(path / "fold_00", 0)
    tensors, good = fold.load_tensors()
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    fuzz(
        count,
        "weights",
        ["predict"],
        path,
        lambda: good,
        lambda new: fold.save_tensors(tensors, new),
        capsys,
        tmp_path,
    )


@COUNTS
def test_sweep_json(small_run, count, capsys, tmp_path):
    sweep, spec = SweepDir(tmp_path / "sweep"), RunDir(small_run).load_spec()
    sweep.register(SweepRecord([SweepJob(f"{number}_gin", spec) for number in range(2)]))
    target = sweep.sweep_json
    fuzz(
        count,
        "sweep.json",
        ["resume"],
        sweep.path,
        lambda: json.loads(target.read_text()),
        lambda new: target.write_text(json.dumps(new)),
        capsys,
        tmp_path,
    )
