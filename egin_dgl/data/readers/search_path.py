"""Locations of raw TU files, in this order: a given root, the cache, grakel's bundled copies, the TU site."""

import importlib.util
import logging
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from egin_dgl.data.readers.download import DEFAULT_URL, download
from egin_dgl.data.readers.raw_files import MAX_BYTES, OPTIONAL, REQUIRED, RawFiles, read_zip
from egin_dgl.errors import DataError, StorageError

log = logging.getLogger(__name__)


def cache_dir() -> Path:
    """Directory of downloads (raw/) and prepared datasets (processed/): EGIN_CACHE, or ~/.cache/egin_dgl."""
    return Path(os.environ.get("EGIN_CACHE") or "~/.cache/egin_dgl").expanduser()


def find_raw(name: str, root: str | os.PathLike | None = None, url: str | None = DEFAULT_URL) -> RawFiles:
    """Find the raw files of a TU dataset, or download them.

    Args:
        name: Name of the dataset.
        root: Directory with NAME/, NAME/raw/ or NAME.zip; default: EGIN_DATA_ROOT.
        url: Where NAME.zip is downloaded from as a last resort; None forbids it.
    """
    # The name becomes part of a path and of a URL.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise DataError(f"{name!r} is not a dataset name: only letters, digits, '_', '-' and '.' are allowed")
    tried = []
    root = root or os.environ.get("EGIN_DATA_ROOT")
    if root:
        if raw := _read_local(Path(root).expanduser(), name, "local files"):
            return raw
        tried.append(f"{root} (no {name}/, {name}/raw/ or {name}.zip with TU files)")
        log.warning("%s is not in %s; searching elsewhere", name, root)

    cache = cache_dir() / "raw"
    try:
        if raw := _read_local(cache, name, "cache"):
            cached = cache / (f"{name}.zip" if ".zip:" in raw.prefix else name)
            return replace(raw, cache_file=cached)
        tried.append(f"cache {cache} (not there)")
    except DataError as error:  # a damaged cache file is replaced by a new download
        log.warning("%s; searching elsewhere", error)
        tried.append(f"cache ({error})")

    # grakel's wheel has MUTAG and Cuneiform; it is located, not imported, as its import takes seconds.
    spec = importlib.util.find_spec("grakel")
    for location in (spec and spec.submodule_search_locations) or ():
        if raw := _read_local(Path(location) / "tests" / "data", name, "bundled with grakel"):
            return raw
    tried.append("grakel's bundled datasets (not among them)")

    if url is None:
        tried.append("no download (no url given)")
    else:
        try:
            return _download_to_cache(name, cache / f"{name}.zip", url)
        except DataError as error:
            tried.append(f"download ({error})")
    raise DataError(
        f"cannot find dataset {name!r}; tried {'; '.join(tried)}: check the name and the network, or put the files "
        f"into ROOT/{name}/ and pass root=ROOT or set EGIN_DATA_ROOT=ROOT"
    )


def _download_to_cache(name: str, file: Path, url: str) -> RawFiles:
    try:
        return replace(download(name, file, url), cache_file=file)
    except StorageError as error:
        log.warning("%s; %s is downloaded without caching it", error, name)
        with tempfile.TemporaryDirectory() as directory:
            return download(name, Path(directory) / f"{name}.zip", url)


def _read_local(root: Path, name: str, kind: str) -> RawFiles | None:
    for directory in (root / name, root / name / "raw"):
        files = {suffix: directory / f"{name}_{suffix}.txt" for suffix in REQUIRED + OPTIONAL}
        try:
            found = {suffix: file for suffix, file in files.items() if file.exists()}
            if (size := sum(file.stat().st_size for file in found.values())) > MAX_BYTES:
                raise DataError(
                    f"the files of {name} in {directory} have {size} bytes, more than {MAX_BYTES}"
                )
            contents = {suffix: file.read_bytes() for suffix, file in found.items()}
        except OSError as error:
            raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
        if contents:
            return RawFiles(name, f"{directory}{os.sep}", f"{directory} ({kind})", contents)
    archive = root / f"{name}.zip"
    return read_zip(archive, name, f"{archive} ({kind})") if archive.is_file() else None
