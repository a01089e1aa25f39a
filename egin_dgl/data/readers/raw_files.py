"""The raw files of one TU dataset in memory, read from a folder or a zip.

Nothing is unpacked to disk, so that a half-unpacked folder or a member that would leave its folder cannot exist.
"""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from egin_dgl.errors import DataError

REQUIRED = ("A", "graph_indicator", "graph_labels")
OPTIONAL = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")
GIB = 1 << 30
MOST = 4 * GIB  # bytes of a dataset's files that are taken into memory
# Text of numbers shrinks to a tenth in a zip, seldom to less than a fiftieth; what is small may be anything.
MOST_SHRUNK, SMALL = 100, GIB // 4


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


def read_zip(archive: Path, name: str, origin: str, max_bytes: int = MOST) -> RawFiles:
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
                size = sum(info.file_size for info in wanted.values())
                most = min(max_bytes, max(SMALL, MOST_SHRUNK * archive.stat().st_size))
                if size > most:
                    raise DataError(f"{archive} would unpack to more than {most} bytes; do not use this file")
                contents = {suffix: opened.read(info) for suffix, info in wanted.items()}
                return RawFiles(name, f"{archive}:{folder}", origin, contents)
    # RuntimeError: an encrypted member; NotImplementedError: a compression zipfile does not know
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{archive} is not a complete zip file ({error}); replace it") from error
    raise DataError(f"{archive} has no file {name}_A.txt in it")
