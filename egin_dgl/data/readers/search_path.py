"""Where raw TU files come from: a given root → the cache → grakel's bundled copies → the TU site."""

import importlib.util
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from egin_dgl.data.readers.download import DEFAULT_URL, download
from egin_dgl.data.readers.raw_files import MOST, OPTIONAL, REQUIRED, RawFiles, read_zip
from egin_dgl.errors import DataError, StorageError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def cache_dir() -> Path:
    """The folder for downloads (raw/) and prepared datasets (processed/); EGIN_CACHE moves it."""
    return Path(os.environ.get("EGIN_CACHE") or "~/.cache/egin_dgl").expanduser()


def find_raw(name: str, root: str | os.PathLike | None = None, url: str | None = DEFAULT_URL) -> RawFiles:
    """Find the raw files of `name`, downloading them as a last resort (`url=None` forbids that)."""
    # a name becomes a path and a URL: it must not escape
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise DataError(f"{name!r} is not a dataset name: only letters, digits, '_', '-' and '.' are allowed")
    tried = []
    given = root or os.environ.get("EGIN_DATA_ROOT")
    if given:
        if raw := _look_in(Path(given).expanduser(), name, "local files"):
            return raw
        tried.append(f"{given} (no {name}/, {name}/raw/ or {name}.zip with TU files)")
        log.warning("%s is not in %s; looking elsewhere", name, given)

    cached = cache_dir() / "raw"
    try:
        if raw := _look_in(cached, name, "cache"):
            return raw
        tried.append(f"cache {cached} (nothing there)")
    except DataError as error:  # a damaged cache file is replaced by a new download, not a dead end
        log.warning("%s; looking elsewhere", error)
        tried.append(f"cache ({error})")

    for folder in _bundled():
        if raw := _look_in(folder, name, "bundled with grakel"):
            return raw
    tried.append("grakel's bundled datasets (not among them)")

    if url is None:
        tried.append("no download (no url given)")
    else:
        try:
            return _downloaded(name, cached, url)
        except DataError as error:
            tried.append(f"download ({error})")
    raise DataError(
        f"cannot find dataset {name!r}; tried {'; '.join(tried)}: check the name and the network, or put the files "
        f"into ROOT/{name}/ and pass root=ROOT or set EGIN_DATA_ROOT=ROOT"
    )


def naming_the_cache(load: Callable[P, T]) -> Callable[P, T]:
    """A file of the cache that is of no use would be found there again and again: `load` says what to do about it."""

    @wraps(load)
    def telling(*args: P.args, **options: P.kwargs) -> T:
        try:
            return load(*args, **options)
        except DataError as error:
            place = re.escape(f"{cache_dir() / 'raw'}{os.sep}")
            found = re.match(rf".*?({place}[\w.-]+?(?:\.zip|(?=[/\\])))", str(error))
            if found is None or str(error).startswith("cannot find"):
                raise
            raise DataError(f"{error}; remove {found.group(1)} to have it downloaded again") from error

    return telling


def _downloaded(name: str, cached: Path, url: str) -> RawFiles:
    """Kept in the cache; where that cannot be written, for this time only."""
    try:
        return download(name, cached / f"{name}.zip", url)
    except StorageError as error:
        log.warning("%s; %s is downloaded for this time only", error, name)
        with tempfile.TemporaryDirectory() as folder:
            return download(name, Path(folder) / f"{name}.zip", url)


def _bundled() -> Iterator[Path]:
    """grakel's wheel carries MUTAG and Cuneiform; it is located, not imported, as its import takes seconds."""
    spec = importlib.util.find_spec("grakel")
    for location in (spec and spec.submodule_search_locations) or ():
        yield Path(location) / "tests" / "data"


def _look_in(root: Path, name: str, kind: str) -> RawFiles | None:
    for folder in (root / name, root / name / "raw"):
        files = {suffix: folder / f"{name}_{suffix}.txt" for suffix in REQUIRED + OPTIONAL}
        try:
            found = {suffix: file for suffix, file in files.items() if file.exists()}
            if (size := sum(file.stat().st_size for file in found.values())) > MOST:
                raise DataError(f"the files of {name} in {folder} have {size} bytes, more than {MOST}")
            contents = {suffix: file.read_bytes() for suffix, file in found.items()}
        except OSError as error:
            raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
        if contents:
            return RawFiles(name, f"{folder}{os.sep}", f"{folder} ({kind})", contents)
    archive = root / f"{name}.zip"
    return read_zip(archive, name, f"{archive} ({kind})") if archive.is_file() else None
