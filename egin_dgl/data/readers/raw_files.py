"""The raw files of one TU dataset in memory, read from a directory or a zip. Nothing is unpacked to disk."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from egin_dgl.errors import DataError
from egin_dgl.files import regular_file

REQUIRED = ("A", "graph_indicator")
TARGETS = ("graph_labels", "graph_attributes")  # at least one of them
OPTIONAL = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")
SUFFIXES = (*REQUIRED, *TARGETS, *OPTIONAL)
GIB = 1 << 30
MAX_BYTES = 4 * GIB  # of the files of a dataset
# Tables of numbers compress to a fifth or a tenth; small archives may have any ratio. Parsing takes ten times the memory.
MAX_RATIO, SMALL_ARCHIVE = 50, GIB // 64


@dataclass(frozen=True)
class RawFiles:
    """The bytes of one TU dataset by suffix (`"A"` is NAME_A.txt)."""

    name: str
    prefix: str  # precedes a file name in messages: "/x/MUTAG/" or "/x/MUTAG.zip:MUTAG/"
    origin: str  # where the files come from, for people
    contents: Mapping[str, bytes]
    cache_file: Path | None = None  # the file or directory of the cache that holds them

    def path(self, suffix: str) -> str:
        """Path of NAME_suffix.txt, for messages."""
        return f"{self.prefix}{self.name}_{suffix}.txt"

    def digest(self) -> str:
        """sha256 of names and contents, wherever the files are."""
        total = hashlib.sha256()
        for suffix in sorted(self.contents):
            content = hashlib.sha256(self.contents[suffix]).hexdigest()
            total.update(f"{self.name}_{suffix}.txt {content}\n".encode())
        return total.hexdigest()


def read_local(root: Path, name: str, kind: str) -> RawFiles | None:
    """Read NAME/, NAME/raw/ or NAME.zip in a directory, if there is one; `kind` of directory, for people."""
    for directory in (root / name, root / name / "raw"):
        files = {suffix: directory / f"{name}_{suffix}.txt" for suffix in SUFFIXES}
        try:
            found = {suffix: regular_file(file) for suffix, file in files.items() if file.exists()}
            if (size := sum(file.stat().st_size for file in found.values())) > MAX_BYTES:
                raise DataError(
                    f"the files of {name} in {directory} have {size} bytes, more than {MAX_BYTES}"
                )
            contents = {suffix: file.read_bytes() for suffix, file in found.items()}
        except OSError as error:
            raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
        if contents:
            return RawFiles(name, f"{directory}{os.sep}", f"{directory} ({kind})", contents)
    archive = regular_file(root / f"{name}.zip")
    return read_zip(archive, name, f"{archive} ({kind})") if archive.is_file() else None


def read_zip(archive: Path, name: str, origin: str, max_bytes: int = MAX_BYTES) -> RawFiles:
    """Read the TU files of `name` from a zip into memory; a damaged, hostile or foreign zip is a DataError."""
    try:
        with zipfile.ZipFile(archive) as file:
            members = {info.filename: info for info in file.infolist()}
            for member in members:
                parts = member.replace("\\", "/").split("/")
                if parts[0] == "" or ".." in parts or ":" in parts[0]:
                    raise DataError(f"{archive} has the unsafe member {member!r}; do not use this file")
            for directory in (f"{name}/", "", f"{name}/raw/"):
                names = {suffix: f"{directory}{name}_{suffix}.txt" for suffix in SUFFIXES}
                wanted = {suffix: members[file] for suffix, file in names.items() if file in members}
                if not wanted:
                    continue
                # zipfile returns at most the declared size of a member, so their sum is a bound.
                size = sum(info.file_size for info in wanted.values())
                limit = min(max_bytes, max(SMALL_ARCHIVE, MAX_RATIO * archive.stat().st_size))
                if size > limit:
                    raise DataError(
                        f"{archive} would unpack to more than {limit} bytes; do not use this file"
                    )
                contents = {suffix: file.read(info) for suffix, info in wanted.items()}
                return RawFiles(name, f"{archive}:{directory}", origin, contents)
    # RuntimeError: an encrypted member; NotImplementedError: an unsupported compression method.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{archive} is not a complete zip file ({error}); replace it") from error
    raise DataError(f"{archive} has no file {name}_A.txt in it")
