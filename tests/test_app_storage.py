"""Disks that are full, small shared memory, folders with any name: one sentence at most, and nothing is lost."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from running import ROOT, SCRIPT, SMALL, same_numbers, seeded

from egin_dgl.cli.overrides import resuming, understood
from egin_dgl.data.tensor_file import write_tensors
from egin_dgl.errors import StorageError
from egin_dgl.evaluation.history import EpochRecord
from egin_dgl.files import write_text
from egin_dgl.named import is_text
from egin_dgl.runs.checkpoint_file import write_checkpoint
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.runs.sweep_dir import SweepDir, SweepRequest
from egin_dgl.training.tensorboard import FoldLogger

TINY = [*SMALL, "trainer.epochs=2", "device=cpu"]


def of_at_most(size):
    """No file of this process may grow larger; what Python writes beyond it is refused as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture
def small_files():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield of_at_most
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def track(path):
    record = EpochRecord(1, *[0.5] * 9, seconds=0.0)
    tracker = FoldLogger(path)
    try:
        for _ in range(20):
            tracker.log_epoch(record, {})
    finally:
        tracker.close()


WRITERS = {
    "text": lambda path: write_text(path, "x" * 5000),
    "checkpoint": lambda path: write_checkpoint(path, {"w": torch.zeros(5000)}),
    "tensors": lambda path: write_tensors(path, {"w": torch.zeros(5000)}),
    "events": track,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_that_cannot_grow_is_named_with_the_reason(small_files, tmp_path, kind, capfd):
    small_files(1000)
    try:
        with pytest.raises(StorageError, match=rf"^cannot write {tmp_path}/file.*: File too large$"):
            WRITERS[kind](tmp_path / "file")
    finally:
        small_files(resource.RLIM_INFINITY)
    assert not list(tmp_path.glob(".*"))
    assert "Traceback" not in capfd.readouterr().err


def test_a_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write .*/file/new: (Not a directory|File exists)"):
        write_text(tmp_path / "file" / "new", "text")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write to a folder that is read-only")
def test_a_folder_that_may_not_be_written_to_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="cannot write .*/new: Permission denied"):
        write_text(tmp_path / "new", "text")


def test_a_run_that_met_its_quota_goes_on_when_there_is_room(start, command, run_here, tmp_path):
    """Workers' errors come back from their processes as the same sentence."""
    process = start(
        *TINY,
        "trainer.fold_workers=2",
        f"hydra.run.dir={tmp_path / 'run'}",
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: of_at_most(12_000),
    )
    _, told = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in told
    line = told.splitlines()[-1]
    assert line.startswith(f"error: cannot write {tmp_path / 'run'}")
    assert line.endswith("File too large; resume=run goes on once it can be written")
    done = command("resume=run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run_here(tmp_path / "whole", *TINY)
    same_numbers(tmp_path / "whole", tmp_path / "run")


def mounted(folder, size, words):
    """A command on, or beside, a real file system of this size, which is gone afterwards; skips where that is forbidden."""
    unshare = shutil.which("unshare")
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(folder)]
    if not unshare or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("mounting a file system is not permitted here")
    mount = f"mount -t tmpfs -o size={size}k none '{folder}' && "
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", mount + words],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHON": sys.executable, "TRAIN": str(SCRIPT)},
    )


def test_a_full_disk_is_one_sentence_and_the_run_goes_on_when_there_is_room(numbers, run_here, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    options = " ".join(seeded([*TINY, "trainer.fold_workers=1", f"hydra.run.dir={disk}/run"]))
    done = mounted(
        disk,
        100,
        f"$PYTHON $TRAIN {options}; echo code $?; mount -o remount,size=50m {disk}; "
        f"$PYTHON $TRAIN resume={disk}/run && cp -r {disk}/run {tmp_path}/kept",
    )
    assert done.returncode == 0 and "code 1" in done.stdout, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "No space left on device; resume=" in line and "Traceback" not in done.stderr
    run_here(tmp_path / "whole", *TINY)
    same_numbers(tmp_path / "whole", tmp_path / "kept")


def test_workers_need_no_shared_memory(numbers, tmp_path):
    """256 KB of /dev/shm, less than the data: a container may have 64 MB, and sets are larger than that."""
    options = " ".join(seeded([*TINY, "dataset.graphs=2000", "trainer.epochs=1", "trainer.fold_workers=2"]))
    done = mounted("/dev/shm", 256, f"$PYTHON $TRAIN {options} hydra.run.dir={tmp_path}/run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "summary.json").exists()


NAMES = [
    "a b",
    "trailing ",
    " leading",
    "ä",
    "=",
    "a=b",
    ",",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'",
    "''",
    '"',
    "#",
    "~",
]
NAMES += [
    "a\\",
    "a\\'b",
    "\\\\",
    "$x",
    "a:b",
    "null",
    "1e3",
    "-x",
    "*",
    "?",
    "a\nb",
    "日本",
    "a;b|c&d",
    "%d",
    "!",
    "@",
]


def composed(words):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("train", [word for word in words if word != "--multirun"], return_hydra_config=True)


@pytest.mark.parametrize("name", NAMES)
def test_any_folder_can_be_resumed(name, tmp_path):
    run = tmp_path / "runs" / name
    (run / ".hydra").mkdir(parents=True)
    (run / ".hydra" / "overrides.yaml").write_text("- seed=3\n")
    config = composed(understood([f"resume={run}"]))
    assert config.hydra.run.dir == str(run) and config.seed == 3
    sweep = SweepDir(tmp_path / "sweeps" / name)
    sweep.claim(SweepRequest([], ["seed=4"], None))
    config = composed(understood([f"resume={sweep.path}"]))
    assert config.hydra.sweep.dir == str(sweep.path) and config.seed == 4
    said = subprocess.run(["sh", "-c", f"printf %s {resuming(run)}"], capture_output=True, text=True).stdout
    assert said == f"resume={os.path.relpath(run)}"


def test_words_to_go_on_are_taken_by_a_shell_where_the_folder_is_no_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = b"a'\\\xff\n ${b}"
    said = subprocess.run(
        ["bash", "-c", f"printf %s {resuming(Path(os.fsdecode(name)))}"], capture_output=True
    )
    assert said.stdout == b"resume=" + name


@pytest.mark.parametrize("name", ["ä =,([{'#~ ", "${seed}${oc.env:HOME}", os.fsdecode(b"no text: \xff")])
def test_a_run_in_an_odd_folder_goes_on_there(name, command, run_here, tmp_path):
    folder = tmp_path / name
    done = command(*TINY, "trainer.fold_workers=1", f"hydra.run.dir={tmp_path / 'plain'}")
    assert done.returncode == 0, done.stderr
    (tmp_path / "plain").rename(folder)
    shutil.rmtree(folder / "fold_01")
    done = command(f"resume={folder}")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert is_text(name) <= done.stdout.endswith(f"in {folder}\n")
    run_here(tmp_path / "whole", *TINY)
    same_numbers(tmp_path / "whole", folder)
    done = command("cv=refit", f"run={folder}")
    assert done.returncode == 0, done.stderr
    assert RunDir(folder / "refit").summary.exists()


@pytest.mark.parametrize("name", ["s${b},", os.fsdecode(b"\xff")])
def test_a_sweep_in_an_odd_folder_goes_on_there(name, command, tmp_path):
    done = command("-m", *TINY, "model=gin,egin", f"hydra.sweep.dir={tmp_path / 'plain'}")
    assert done.returncode == 0, done.stderr
    shutil.copytree(tmp_path / "plain", tmp_path / name)
    jobs = [next((tmp_path / place).glob("1_*")) for place in ("plain", name)]
    shutil.rmtree(jobs[1] / "fold_01")
    RunDir(jobs[1]).summary.unlink()
    done = command(f"resume={tmp_path / name}")
    assert done.returncode == 0, done.stderr
    same_numbers(*jobs)
    assert sorted(os.listdir(tmp_path)) == sorted(["plain", name])


def test_what_a_killed_run_left_is_removed_when_it_is_resumed(tmp_path):
    left = [tmp_path / ".run.json.abcd_123.tmp", tmp_path / "fold_00" / ".last.pt.abcdefgh.tmp"]
    kept = [tmp_path / ".my.tmp", tmp_path / "mine.abcdefgh.tmp", tmp_path / "other" / ".x.abcdefgh.tmp"]
    for path in left + kept:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with RunDir(tmp_path).alone():
        assert not any(path.exists() for path in left) and all(path.exists() for path in kept)
