"""Download a zip from the TU site: size-limited, retried, written atomically."""

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
MIN_RATE = 10 << 10  # bytes per second

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
    """Download url/name.zip to `target`, which appears only after it was read as a complete zip of the dataset.

    urllib rather than pooch: pooch neither limits the size nor retries without a known hash.

    Args:
        name: Name of the dataset.
        target: The file to write.
        url: Directory of the server.
        attempts: Number of attempts if the network or the server fails.
        pause: Seconds before the second attempt, twice as many before the third, ….
        timeout: Seconds to wait for the next bytes.
        patience: Seconds after which a server slower than MIN_RATE is given up.
        max_bytes: Maximum size of the file.
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
            prefix = raw.prefix.replace(str(temporary), str(target), 1)
            return RawFiles(name, prefix, f"{target} (downloaded from {source})", raw.contents)
        except HTTPError as error:
            reason, retry = f"HTTP {error.code} {error.reason}", error.code >= 500 or error.code in (408, 429)
        except (OSError, HTTPException) as error:  # time-outs and refused connections are OSErrors
            reason, retry = f"{type(error).__name__}: {error}", True
        except DataError as error:
            reason, retry = str(error).replace(str(temporary), source), False
        if not retry or attempt == attempts:
            raise DataError(f"{source}: {reason}")
        log.warning("%s: %s; retrying", source, reason)
        time.sleep(pause * attempt)
    raise ConfigError(f"attempts must be at least 1, got {attempts}")


class _NoDowngrade(HTTPRedirectHandler):
    def redirect_request(self, request, file, code, message, headers, target):
        if urlsplit(request.full_url).scheme == "https" and urlsplit(target).scheme != "https":
            raise DataError(f"redirected from https to {target}, which is insecure")
        return super().redirect_request(request, file, code, message, headers, target)


def _fetch(source: str, target: Path, timeout: float, patience: float, max_bytes: int) -> None:
    received: Queue = Queue(64)
    stopped = threading.Event()
    # In a daemon thread: each byte of a slow header is within the socket's timeout, so reading it may never end.
    threading.Thread(target=_receive, args=(source, timeout, received, stopped), daemon=True).start()
    start, done = time.monotonic(), 0

    def next_block():
        while True:
            seconds = time.monotonic() - start
            if seconds > patience and done < MIN_RATE * seconds:
                raise DataError(f"the server is too slow: {done} bytes in {seconds:.0f} s")
            with suppress(Empty):
                block = received.get(timeout=min(1.0, patience))
                if isinstance(block, Exception):
                    raise block
                return block

    try:
        total = next_block()  # None if the server does not send the length
        with target.open("wb") as file, _progress(source, total) as advance:
            while (total or 0) <= max_bytes and done <= max_bytes and (block := next_block()):
                file.write(block)
                done += len(block)
                advance(len(block))
    finally:
        stopped.set()
        with suppress(Empty):  # a thread that waits for a free slot must see it
            while True:
                received.get_nowait()
    if max(total or 0, done) > max_bytes:
        raise DataError(f"the file is larger than {max_bytes} bytes")
    if total is not None and done != total:
        raise ConnectionError(f"got {done} of {total} bytes")


def _receive(source: str, timeout: float, received: Queue, stopped: threading.Event) -> None:
    """Put the length of the body, its blocks and an empty block into the queue, or an exception."""
    try:
        request = Request(source, headers={"User-Agent": "egin_dgl"})
        with build_opener(_NoDowngrade).open(request, timeout=timeout) as response:
            received.put(response.length)
            while not stopped.is_set() and (block := response.read1(1 << 16)):
                received.put(block)
            received.put(b"")
    except Exception as error:
        received.put(error)


@contextmanager
def _progress(source: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, one line elsewhere."""
    if not sys.stderr.isatty():
        print(f"downloading {source}", file=sys.stderr)
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"downloading {source}", total=total)
        yield lambda count: progress.advance(task, count)
