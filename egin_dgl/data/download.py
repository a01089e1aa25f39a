"""Download a zip from the TU site: bounded, retried, and in place only once it is whole."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from egin_dgl.data.rawfiles import GIB, REQUIRED, RawFiles, read_zip
from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import atomic_path

DEFAULT_URL = "https://www.chrsmrrs.com/graphkerneldatasets"

log = logging.getLogger(__name__)


def download(
    name: str,
    target: Path,
    url: str = DEFAULT_URL,
    *,
    attempts: int = 3,
    pause: float = 1.0,
    timeout: float = 30.0,
    max_bytes: int = 2 * GIB,
) -> RawFiles:
    """Fetch url/name.zip into `target`, which appears only once it has been read as a whole and good zip.

    urllib rather than pooch: pooch neither bounds the size nor retries without a hash known beforehand.
    """
    source = f"{url.rstrip('/')}/{name}.zip"
    if urlsplit(source).scheme not in ("http", "https"):
        raise ConfigError(f"url must start with https:// or http://, got {url!r}")
    for attempt in range(1, attempts + 1):
        try:
            with atomic_path(target) as temporary:
                _fetch(source, temporary, timeout, max_bytes)
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


def _fetch(source: str, target: Path, timeout: float, max_bytes: int) -> None:
    request = Request(source, headers={"User-Agent": "egin_dgl"})
    with build_opener(_NoDowngrade).open(request, timeout=timeout) as response, target.open("wb") as file:
        total, done = response.length, 0  # length is None where the server does not tell
        with _progress(source, total) as advance:
            # checked before the body is read, too, so that an honest giant costs nothing
            while (total or 0) <= max_bytes and done <= max_bytes and (block := response.read(1 << 16)):
                file.write(block)
                done += len(block)
                advance(len(block))
    if max(total or 0, done) > max_bytes:
        raise DataError(f"the file is larger than {max_bytes} bytes")
    if total is not None and done != total:
        raise ConnectionError(f"got {done} of {total} bytes")


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
