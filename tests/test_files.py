import os
import subprocess
import sys

import pytest

from egin_dgl.errors import StorageError
from egin_dgl.files import atomic_path, remove_abandoned, write_text


def test_write_is_atomic(tmp_path):
    target = tmp_path / "new" / "file.txt"
    write_text(target, "first")
    with pytest.raises(RuntimeError), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError("power cut")
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]
    assert target.stat().st_mode & 0o777 != 0o600


def test_what_is_not_a_regular_file_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    before = {path: path.lstat().st_mode for path in tmp_path.iterdir()}
    for path in before:
        with pytest.raises(StorageError, match=f"cannot write {path}: it exists and is not a regular file"):
            write_text(path, "text")
    assert {path: path.lstat().st_mode for path in tmp_path.iterdir()} == before


def test_files_of_killed_processes_are_removed_and_those_of_live_ones_kept(tmp_path):
    target = tmp_path / "out.csv"
    write = f"import sys; from egin_dgl.files import atomic_path; held = atomic_path({str(target)!r}); "
    with subprocess.Popen(
        [sys.executable, "-c", f"{write}print(held.__enter__(), flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        left = process.stdout.readline().strip()
        remove_abandoned(target)
        assert os.path.exists(left)
        process.kill()
    others = [
        tmp_path / name for name in (".out.csv.tmp", ".out.csv.abcdefgh.txt", ".other.csv.abcdefgh.tmp")
    ]
    for other in others:
        other.touch()
    remove_abandoned(target)
    assert sorted(tmp_path.iterdir()) == sorted(others)
