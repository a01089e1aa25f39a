"""A folder under a name that others can say.

Hydra takes ${ in a name for the name of an option, and writes names down as UTF-8, as TensorBoard does. A folder called
otherwise is given to them as a link, and told to people as the folder meant.
"""

import atexit
import os
import shlex
import shutil
from pathlib import Path
from tempfile import mkdtemp

MARK = "egin_named_"


def sayable(folder: Path) -> Path:
    """The folder itself wherever Hydra can say its name, or a link to it that is there until this process ends."""
    full = os.path.abspath(folder)
    if "${" not in full and is_text(full):
        return folder
    place = mkdtemp(prefix=MARK)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    link = Path(place, "it")
    link.symlink_to(full)
    return link


def meant(path: str | Path) -> Path:
    """The folder that Hydra calls so; where its name is no text, still the link."""
    folder = behind(path)
    return folder if is_text(str(folder)) else Path(path)


def behind(path: str | Path) -> Path:
    """The folder itself, whatever it is called here."""
    return Path(path).resolve() if any(part.startswith(MARK) for part in Path(path).parts) else Path(path)


def is_text(name: str) -> bool:
    """Whether it is UTF-8 on disk: Python makes half characters of other bytes."""
    return name.encode(errors="replace").decode() == name


def quoted(word: str) -> str:
    """A word as a shell takes it, also where it is no text."""
    if is_text(word):
        return shlex.quote(word)
    return "$'{}'".format(repr(os.fsencode(word))[2:-1].replace("'", r"\'"))


def written(path: Path) -> str:
    """The folder's name for people, with a sign for each byte that is no text."""
    return os.fsencode(behind(path)).decode(errors="replace")
