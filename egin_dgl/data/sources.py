"""Where raw TU files come from: a given root → the cache → grakel's bundled copies → the TU site.

Nothing is unpacked to disk. A folder or a zip is read into memory as a `RawFiles`, so that a half-unpacked folder
or a member that would leave its folder cannot exist.
"""

import hashlib
import importlib.util
import logging
import os
import re
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from egin_dgl.errors import ConfigError, DataError
from egin_dgl.files import atomic_path

DEFAULT_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
REQUIRED = ("A", "graph_indicator", "graph_labels")
OPTIONAL = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")
GIB = 1 << 30

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RawFiles:
    """The bytes of one TU dataset by suffix (`"A"` is NAME_A.txt), and where they came from."""

    name: str
    folder: str  # precedes a file name in messages: "/x/MUTAG/" or "/x/MUTAG.zip:MUTAG/"
    origin: str
    contents: Mapping[str, bytes]

    def read(self, suffix: str) -> bytes | None:
        """The content of NAME_suffix.txt, None where there is no such file."""
        return self.contents.get(suffix)

    def path(self, suffix: str) -> str:
        """Where NAME_suffix.txt is (or would be), for messages."""
        return f"{self.folder}{self.name}_{suffix}.txt"

    def digest(self) -> str:
        """sha256 over names and contents: equal files give an equal digest wherever they lie."""
        total = hashlib.sha256()
        for suffix in sorted(self.contents):
            content = hashlib.sha256(self.contents[suffix]).hexdigest()
            total.update(f"{self.name}_{suffix}.txt {content}\n".encode())
        return total.hexdigest()


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
            return download(name, cached / f"{name}.zip", url)
        except DataError as error:
            tried.append(f"download ({error})")
    raise DataError(
        f"cannot find dataset {name!r}; tried {'; '.join(tried)}: check the name and the network, or put the files "
        f"into ROOT/{name}/ and pass root=ROOT or set EGIN_DATA_ROOT=ROOT"
    )


def _bundled() -> Iterator[Path]:
    """grakel's wheel carries MUTAG and Cuneiform; it is located, not imported, as its import takes seconds."""
    spec = importlib.util.find_spec("grakel")
    for location in (spec and spec.submodule_search_locations) or ():
        yield Path(location) / "tests" / "data"


def _look_in(root: Path, name: str, kind: str) -> RawFiles | None:
    for folder in (root / name, root / name / "raw"):
        files = {suffix: folder / f"{name}_{suffix}.txt" for suffix in REQUIRED + OPTIONAL}
        try:
            contents = {suffix: file.read_bytes() for suffix, file in files.items() if file.exists()}
        except OSError as error:
            raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
        if contents:
            return RawFiles(name, f"{folder}{os.sep}", f"{folder} ({kind})", contents)
    archive = root / f"{name}.zip"
    return read_zip(archive, name, f"{archive} ({kind})") if archive.is_file() else None


def read_zip(archive: Path, name: str, origin: str, max_bytes: int = 4 * GIB) -> RawFiles:
    """Read the TU files of `name` from a zip into memory; a damaged, hostile or foreign zip is a DataError."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = {info.filename: info for info in opened.infolist()}
            for member in members:
                parts = member.replace("\\", "/").split("/")
                if parts[0] == "" or ".." in parts or ":" in parts[0]:
                    raise DataError(
                        f"{archive} has the member {member!r}, which leaves its folder; do not use this file"
                    )
            for folder in (f"{name}/", "", f"{name}/raw/"):
                names = {suffix: f"{folder}{name}_{suffix}.txt" for suffix in REQUIRED + OPTIONAL}
                wanted = {suffix: members[file] for suffix, file in names.items() if file in members}
                if not wanted:
                    continue
                # zipfile never returns more than the size a member declares, so the sum of those is a bound
                if sum(info.file_size for info in wanted.values()) > max_bytes:
                    raise DataError(
                        f"{archive} would unpack to more than {max_bytes} bytes; do not use this file"
                    )
                contents = {suffix: opened.read(info) for suffix, info in wanted.items()}
                return RawFiles(name, f"{archive}:{folder}", origin, contents)
    # RuntimeError: an encrypted member; NotImplementedError: a compression zipfile does not know
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{archive} is not a complete zip file ({error}); replace it") from error
    raise DataError(f"{archive} has no file {name}_A.txt in it")


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
