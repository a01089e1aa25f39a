"""Locations of raw TU files, in this order: a given root, the cache, grakel's bundled copies, the TU site."""

import importlib.util
import logging
import os
import re
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, wait
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from egin_dgl.data.readers.raw_files import GIB, REQUIRED, TARGETS, RawFiles, read_local, read_zip
from egin_dgl.errors import ConfigError, DataError, StorageError
from egin_dgl.files import atomic_path

DEFAULT_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
MIN_RATE = 10 << 10  # bytes per second

log = logging.getLogger(__name__)


def cache_dir() -> Path:
    """Directory of downloads (raw/) and prepared datasets (processed/): EGIN_CACHE, or ~/.cache/egin_dgl."""
    return Path(os.environ.get("EGIN_CACHE") or "~/.cache/egin_dgl").expanduser()


def find_raw(name: str, root: str | os.PathLike | None = None, url: str | None = DEFAULT_URL) -> RawFiles:
    """Find the raw files of a TU dataset in `root` (default: EGIN_DATA_ROOT) and elsewhere, or download them.

    A root has NAME/, NAME/raw/ or NAME.zip. `url` None forbids a download.
    """
    # The name becomes part of a path and of a URL.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise DataError(f"{name!r} is not a dataset name: only letters, digits, '_', '-' and '.' are allowed")
    tried = []
    if root := root or os.environ.get("EGIN_DATA_ROOT"):
        if raw := read_local(Path(root).expanduser(), name, "local files"):
            return raw
        tried.append(f"{root} (no {name}/, {name}/raw/ or {name}.zip with TU files)")
        log.warning("%s is not in %s; searching elsewhere", name, root)

    cache = cache_dir() / "raw"
    try:
        if raw := read_local(cache, name, "cache"):
            return replace(raw, cache_file=cache / (f"{name}.zip" if ".zip:" in raw.prefix else name))
        tried.append(f"cache {cache} (not there)")
    except DataError as error:  # a damaged cache file is replaced by a new download
        log.warning("%s; searching elsewhere", error)
        tried.append(f"cache ({error})")

    # grakel's wheel has MUTAG and Cuneiform; it is located, not imported, as its import takes seconds.
    spec = importlib.util.find_spec("grakel")
    for location in (spec and spec.submodule_search_locations) or ():
        if raw := read_local(Path(location) / "tests" / "data", name, "bundled with grakel"):
            return raw
    bundled = "not among them" if spec else "grakel is not installed; it carries MUTAG and Cuneiform"
    tried.append(f"grakel's bundled datasets ({bundled})")

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


def download(
    name: str,
    target: Path,
    url: str = DEFAULT_URL,
    *,
    attempts: int = 3,
    pause: float = 1.0,
    timeout: float = 30.0,
    patience: float = 60.0,
    max_bytes: int = 2 * GIB,
) -> RawFiles:
    """Download url/name.zip to `target`, which appears only after it was read as a complete zip of the dataset.

    A failing network or server gets several attempts, with a pause of that many seconds, twice as many, …. The socket's
    timeout is `timeout`; after `patience` seconds, a server slower than MIN_RATE is given up.
    urllib rather than pooch: pooch neither limits the size nor retries without a known hash.
    """
    source = f"{url.rstrip('/')}/{name}.zip"
    if urlsplit(source).scheme not in ("http", "https"):
        raise ConfigError(f"url must start with https:// or http://, got {url!r}")
    for attempt in range(1, attempts + 1):
        try:
            with atomic_path(target) as temporary:
                _fetch(source, temporary, timeout, patience, max_bytes)
                raw = read_zip(temporary, name, f"{target} (downloaded from {source})")
                missing = [suffix for suffix in REQUIRED if suffix not in raw.contents]
                missing += [] if raw.contents.keys() & set(TARGETS) else TARGETS[:1]
                if missing:
                    raise DataError(f"the zip has no {name}_{missing[0]}.txt")
            return replace(raw, prefix=raw.prefix.replace(str(temporary), str(target), 1))
        except HTTPError as error:
            reason, retry = f"HTTP {error.code} {error.reason}", error.code >= 500 or error.code in (408, 429)
        except (OSError, HTTPException) as error:  # time-outs and refused connections are OSErrors
            reason, retry = f"{type(error).__name__}: {error}", True
        except DataError as error:
            reason, retry = str(error).replace(str(temporary), source), False
        if not retry or attempt == attempts:
            break
        log.warning("%s: %s; retrying", source, reason)
        time.sleep(pause * attempt)
    raise DataError(f"{source}: {reason}")


class _NoDowngrade(HTTPRedirectHandler):
    def redirect_request(self, request, file, code, message, headers, target):
        if urlsplit(request.full_url).scheme == "https" and urlsplit(target).scheme != "https":
            raise DataError(f"redirected from https to {target}, which is insecure")
        return super().redirect_request(request, file, code, message, headers, target)


def _fetch(source: str, target: Path, timeout: float, patience: float, max_bytes: int) -> None:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from egin_dgl.terminal import make_console  # rich is needed for downloads only

    received: Future = Future()
    total, done = None, 0
    on_terminal = sys.stderr.isatty()

    def receive() -> None:
        nonlocal total, done
        try:
            request = Request(source, headers={"User-Agent": "egin_dgl"})
            with build_opener(_NoDowngrade).open(request, timeout=timeout) as response:
                total = response.length  # None if the server does not send it
                if not on_terminal:
                    print(f"downloading {source}", file=sys.stderr)
                while max(total or 0, done) <= max_bytes and (block := response.read1(1 << 16)):
                    done += file.write(block)  # fails, and so ends the thread, once the file is closed
            received.set_result(None)
        except Exception as error:
            received.set_exception(error)

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    bar = Progress(*columns, console=make_console(stderr=True), disable=not on_terminal)
    with target.open("wb") as file, bar:
        task = bar.add_task(f"downloading {source}")
        start = time.monotonic()
        # In a daemon thread: each byte of a slow header is within the socket's timeout, so reading it may never end.
        threading.Thread(target=receive, daemon=True).start()
        while not wait([received], timeout=0.2).done:
            bar.update(task, completed=done, total=total)
            seconds = time.monotonic() - start
            if seconds > patience and done < MIN_RATE * seconds:
                raise DataError(f"the server is too slow: {done} bytes in {seconds:.0f} s")
        received.result()
    if max(total or 0, done) > max_bytes:
        raise DataError(f"the file is larger than {max_bytes} bytes")
    if total is not None and done != total:
        raise ConnectionError(f"got {done} of {total} bytes")
