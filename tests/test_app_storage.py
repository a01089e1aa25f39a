"""Full disks, small shared memory, directories of any name: at most one sentence, and nothing is lost."""

import os
import resource
import shutil
import subprocess
import sys

import pytest
import torch
from running import SCRIPT, SMALL, same_numbers, seeded

from egin_dgl.cli.overrides import parse_arguments, resume_arguments
from egin_dgl.data.tensor_file import write_tensors
from egin_dgl.errors import ConfigError, StorageError
from egin_dgl.evaluation.history import EpochRecord
from egin_dgl.files import write_text
from egin_dgl.runs.fold_dir import write_checkpoint
from egin_dgl.runs.run_dir import RunDir
from egin_dgl.training.tensorboard import FoldLogger

TINY = [*SMALL, "trainer.epochs=2", "device=cpu"]


def limit_file_size(size):
    """Limit the size of files of this process; a larger one is refused as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture
def small_files():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield limit_file_size
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def track(path):
    record = EpochRecord(1, *[0.5] * 8, seconds=0.0)
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
def test_write_errors_name_the_file_and_the_reason(small_files, tmp_path, kind, capfd):
    small_files(1000)
    try:
        with pytest.raises(StorageError, match=rf"^cannot write {tmp_path}/file.*: File too large$"):
            WRITERS[kind](tmp_path / "file")
    finally:
        small_files(resource.RLIM_INFINITY)
    assert not list(tmp_path.glob(".*"))
    assert "Traceback" not in capfd.readouterr().err


def test_file_in_place_of_a_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write .*/file/new: (Not a directory|File exists)"):
        write_text(tmp_path / "file" / "new", "text")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write to a read-only directory")
def test_read_only_directory(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="cannot write .*/new: Permission denied"):
        write_text(tmp_path / "new", "text")


@pytest.mark.slow
def test_run_resumes_after_a_quota_was_reached(start, command, run_here, tmp_path):
    """Errors of workers are reported as those of the run."""
    process = start(
        *TINY,
        "trainer.fold_workers=2",
        f"hydra.run.dir={tmp_path / 'run'}",
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: limit_file_size(12_000),
    )
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in errors
    line = errors.splitlines()[-1]
    assert line.startswith(f"error: cannot write {tmp_path / 'run'}")
    assert line.endswith("File too large; resume=run resumes once it can be written")
    done = command("resume=run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run_here(tmp_path / "whole", *TINY)
    same_numbers(tmp_path / "whole", tmp_path / "run")


def run_mounted(folder, size, script):
    """Run a shell script with a file system of this size mounted at `folder`; skip the test if mounting is forbidden."""
    unshare = shutil.which("unshare")
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(folder)]
    if not unshare or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("mounting a file system is not permitted here")
    mount = f"mount -t tmpfs -o size={size}k none '{folder}' && "
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", mount + script],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHON": sys.executable, "TRAIN": str(SCRIPT)},
    )


@pytest.mark.slow
def test_run_resumes_after_the_disk_was_full(numbers, run_here, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    options = " ".join(seeded([*TINY, "trainer.fold_workers=1", f"hydra.run.dir={disk}/run"]))
    done = run_mounted(
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


@pytest.mark.slow
def test_workers_need_no_shared_memory(numbers, tmp_path):
    """256 KB of /dev/shm, less than the data: a container may have 64 MB, and sets are larger than that."""
    options = " ".join(seeded([*TINY, "dataset.graphs=2000", "trainer.epochs=1", "trainer.fold_workers=2"]))
    done = run_mounted("/dev/shm", 256, f"$PYTHON $TRAIN {options} hydra.run.dir={tmp_path}/run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "summary.json").exists()


ODD = "ä =,([{'#~ ${seed}${oc.env:HOME}\n"


@pytest.mark.slow
def test_run_resumes_in_a_directory_of_any_name(small_run, command, tmp_path):
    folder = shutil.copytree(small_run, tmp_path / ODD)
    shutil.rmtree(folder / "fold_01")
    done = command(f"resume={folder}")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    same_numbers(small_run, folder)
    done = command("cv=refit", f"run={folder}")
    assert done.returncode == 0, done.stderr
    assert RunDir(folder / "refit").summary.exists()


def test_arguments_to_resume_are_quoted_for_a_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = subprocess.run(
        ["sh", "-c", f"printf %s {resume_arguments(ODD)}"], capture_output=True, text=True
    )
    assert printed.stdout == f"resume={ODD}"
    with pytest.raises(ConfigError, match="not UTF-8"):
        parse_arguments(["resume=" + os.fsdecode(b"\xff")])


def test_temporary_files_of_a_killed_run_are_removed(tmp_path):
    left = [tmp_path / ".run.json.abcd_123.tmp", tmp_path / "fold_00" / ".last.pt.abcdefgh.tmp"]
    kept = [tmp_path / ".my.tmp", tmp_path / "mine.abcdefgh.tmp", tmp_path / "other" / ".x.abcdefgh.tmp"]
    for path in left + kept:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with RunDir(tmp_path).lock():
        assert not any(path.exists() for path in left) and all(path.exists() for path in kept)
