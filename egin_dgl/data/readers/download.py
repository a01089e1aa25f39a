"""Download a zip from the TU site: bounded, retried, and in place only once it is whole."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from queue import Empty, Queue
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from egin_dgl.data.readers.raw_files import GIB, REQUIRED, RawFiles, read_zip
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import atomic_path

DEFAULT_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
SLOWEST = 10 << 10  # bytes a second that a download must come to

log = logging.getLogger(__name__)


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
    """Fetch url/name.zip into `target`, which appears only once it has been read as a whole and good zip.

    After `patience` seconds a server that sent less than SLOWEST bytes a second is given up: each drop it sends is in time
    for the socket's own `timeout`.

    urllib rather than pooch: pooch neither bounds the size nor retries without a hash known beforehand.
    """
    source = f"{url.rstrip('/')}/{name}.zip"
    if urlsplit(source).scheme not in ("http", "https"):
        raise ConfigError(f"url must start with https:// or http://, got {url!r}")
    for attempt in range(1, attempts + 1):
        try:
            with atomic_path(target) as temporary:
                _fetch(source, temporary, timeout, patience, max_bytes)
                raw = read_zip(temporary, name, "")
                if missing := [suffix for suffix in REQUIRED if suffix not in raw.contents]:
                    raise DataError(f"the zip has no {name}_{missing[0]}.txt")
            folder = raw.folder.replace(str(temporary), str(target), 1)
            return RawFiles(name, folder, f"{target} (downloaded from {source})", raw.contents)
        except HTTPError as error:
            reason, again = f"HTTP {error.code} {error.reason}", error.code >= 500 or error.code in (408, 429)
        except (OSError, HTTPException) as error:  # time-outs and refused connections are OSErrors
            reason, again = f"{type(error).__name__}: {error}", True
        except DataError as error:
            reason, again = str(error).replace(str(temporary), source), False
        if not again or attempt == attempts:
            raise DataError(f"{source}: {reason}")
        log.warning("%s: %s; trying again", source, reason)
        time.sleep(pause * attempt)
    raise ConfigError(f"attempts must be at least 1, got {attempts}")


class _NoDowngrade(HTTPRedirectHandler):
    def redirect_request(self, request, file, code, message, headers, target):
        if urlsplit(request.full_url).scheme == "https" and urlsplit(target).scheme != "https":
            raise DataError(f"redirected from https to {target}, which is not safe")
        return super().redirect_request(request, file, code, message, headers, target)


def _fetch(source: str, target: Path, timeout: float, patience: float, max_bytes: int) -> None:
    arrived: Queue = Queue(64)
    given_up = threading.Event()
    # A thread that can be left alone: reading one line of a header may take for ever.
    threading.Thread(target=_receive, args=(source, timeout, arrived, given_up), daemon=True).start()
    start, done = time.monotonic(), 0

    def next_part():
        while True:
            seconds = time.monotonic() - start
            if seconds > patience and done < SLOWEST * seconds:
                raise DataError(f"the server is too slow: {done} bytes in {seconds:.0f} s")
            with suppress(Empty):
                part = arrived.get(timeout=min(1.0, patience))
                if isinstance(part, Exception):
                    raise part
                return part

    try:
        total = next_part()  # None where the server does not tell
        with target.open("wb") as file, _progress(source, total) as advance:
            # checked before the body is read, too, so that an honest giant costs nothing
            while (total or 0) <= max_bytes and done <= max_bytes and (block := next_part()):
                file.write(block)
                done += len(block)
                advance(len(block))
    finally:
        given_up.set()
        with suppress(Empty):  # so that the thread, if it waits for room, sees it
            while True:
                arrived.get_nowait()
    if max(total or 0, done) > max_bytes:
        raise DataError(f"the file is larger than {max_bytes} bytes")
    if total is not None and done != total:
        raise ConnectionError(f"got {done} of {total} bytes")


def _receive(source: str, timeout: float, arrived: Queue, given_up: threading.Event) -> None:
    """Pass on the length that the server tells, the body in blocks, an empty block; or what went wrong."""
    try:
        request = Request(source, headers={"User-Agent": "egin_dgl"})
        with build_opener(_NoDowngrade).open(request, timeout=timeout) as response:
            arrived.put(response.length)
            while not given_up.is_set() and (block := response.read1(1 << 16)):
                arrived.put(block)
            arrived.put(b"")
    except Exception as error:
        arrived.put(error)


@contextmanager
def _progress(source: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; in a log file a bar would be noise, so there it is one line."""
    if not sys.stderr.isatty():
        print(f"downloading {source}", file=sys.stderr)
        yield lambda count: None
        return
    from rich.console import Console  # only a terminal needs it
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"downloading {source}", total=total)
        yield lambda count: progress.advance(task, count)
