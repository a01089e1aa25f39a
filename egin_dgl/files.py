"""Atomic writes: a file appears whole or not at all, also when two processes write it or a process is killed.

A file that cannot be written raises a StorageError with the file and the reason.
"""

import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egin_dgl.errors import ConfigError, DataError, StorageError

if TYPE_CHECKING:  # slow to import
    from matplotlib.figure import Figure

NETWORK_ERRORS = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH)
TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}\.tmp")  # names made by `temporary_sibling`


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same directory; on success it is renamed to `path`, on failure removed.

    A directory, pipe or device is never replaced by a file.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise StorageError(f"cannot write {path}: it exists and is not a regular file")
    with storage_errors(path), temporary_sibling(path) as temporary:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes private files; a result is an ordinary one
        os.replace(temporary, path)


@contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """An empty temporary file in the directory of `path`, locked by this process, removed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def storage_errors(path: str | Path) -> Iterator[None]:
    """Turn an OSError about writing `path` into a StorageError."""
    try:
        yield
    except OSError as error:
        if reason := write_failure_reason(error):
            raise StorageError(f"cannot write {path}: {reason}") from error
        raise


def regular_file(path: Path) -> Path:
    """The path, unless it is a device, a pipe or a socket, which may never end."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise DataError(f"{path} is a device, a pipe or a socket; give a file or a directory")
    return path


def output_directory(path: Path) -> Path:
    """The path of a directory to write to, which need not exist yet, unless it cannot become one."""
    for place in (path, *path.parents):
        if os.path.lexists(place) and not place.is_dir():
            raise StorageError(f"cannot write to the directory {path}: {place} is not a directory")
    return path


def write_failure_reason(error: OSError) -> str | None:
    """Why a file could not be written; None for an error of a network or a pipe."""
    is_network = isinstance(error, (ConnectionError, TimeoutError)) or error.errno in NETWORK_ERRORS
    return None if is_network or error.errno is None else os.strerror(error.errno)


def write_bytes(path: str | Path, content: bytes) -> None:
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode())


def save_figure(stem: Path, figure: "Figure") -> Path:
    """Write a figure as STEM.png and STEM.svg, the same bytes every time; return the path of the PNG."""
    from matplotlib import rc_context

    # Text as text: it can be edited, and files are a tenth of those with glyphs as paths.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "egin_dgl"}):
        kinds: dict[str, dict[str, Any]] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 120}}
        for kind, options in kinds.items():
            path = stem.with_name(f"{stem.name}.{kind}")
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=kind, **options)
            figure.set_layout_engine(None)  # the layout stays: to compute it takes longer than to draw
    return path


def move_aside(path: Path) -> Path:
    """Rename a damaged file, so that it can be written again and nothing is lost."""
    aside = path.with_name(f"{path.name}.damaged")
    with storage_errors(aside):
        return path.replace(aside)


def remove_abandoned(path: Path) -> None:
    """Remove temporary files of `path` that killed processes left: those that no process has locked."""
    prefix = f".{path.name}."
    for entry in os.scandir(path.parent) if path.parent.is_dir() else ():
        is_temporary = entry.name.startswith(prefix) and len(entry.name) == len(prefix) + len("12345678.tmp")
        if is_temporary and TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with suppress(OSError), open(entry, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry)


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files of killed processes; no other process may be writing to `folder`."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def check_links(path: Path) -> None:
    """Refuse a directory with symbolic links that lead out of it, through which files elsewhere would be read or written."""
    inside = path.resolve()
    for place, directories, files in os.walk(path):
        for name in (*directories, *files):
            entry = Path(place, name)
            if entry.is_symlink() and not entry.resolve().is_relative_to(inside):
                raise ConfigError(
                    f"{entry} is a link that leads out of the directory; if you trust its author, add trust=true"
                )
