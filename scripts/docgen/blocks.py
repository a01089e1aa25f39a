"""Blocks of a document that a command makes: their register, and their place between two markers.

    <!-- begin first_table: made by python scripts/docs.py first_table
    python scripts/train.py reproducible=any
    seed 0, egin-dgl 0.1.0, torch 2.13.0, dgl 1.1.3 -->
    the output of the command
    <!-- end first_table -->

The comment holds the commands of the register, and the seed and versions of the run that made the content. A block whose
content no such run has made yet has `NOT_MADE` in place of seed and versions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from omegaconf import OmegaConf

from egin_dgl.errors import ConfigError

NOT_MADE = "numbers from before: to be made again"
BLOCK = re.compile(
    r"^<!-- begin (?P<name>\w+): made by python scripts/docs\.py (?P=name)\n(?P<notes>.*?) -->\n"
    r"(?P<content>.*?)^<!-- end (?P=name) -->$",
    re.DOTALL | re.MULTILINE,
)
VERDICTS = "matters|harms|equivalent|undecided"  # of scripts/edges.py
MARKER = re.compile(r"^<!-- (?:begin|end) \w+", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One entry of the register; FOLDER in a command stands for the directory of the block's runs."""

    name: str
    file: str  # the document, relative to the project root
    runs: Sequence[str] = ()  # training commands, each with its own directory FOLDER/0, FOLDER/1, …
    show: str | None = None  # the command whose output is the block; null: the output of the last run
    take: str | None = None  # a Markdown file that `show` writes, whose first section is the block instead
    fenced: bool = False  # terminal output, in a code fence
    without: Sequence[str] = ()  # regular expressions that are removed, such as times
    columns: int = 80  # width of the terminal
    needs: Sequence[str] = ()  # TU datasets that must be available
    long: bool = False  # takes more than a few minutes
    tiny: str = "trainer.epochs=2 cv.k=3"  # overrides with which a test makes the same layout in seconds
    tiny_show: str = ""  # arguments added to `show` by that test
    some_rows: bool = False  # with them, only some rows of the table are made
    same_layout_as: str | None = None  # another block of the same command, which that test makes instead

    @property
    def commands(self) -> tuple[str, ...]:
        return (*self.runs, *([self.show] if self.show else []))


@dataclass(frozen=True)
class DocumentBlock:
    """A block as it is in a document."""

    commands: tuple[str, ...]
    provenance: str
    content: str

    @property
    def is_made(self) -> bool:
        return self.provenance != NOT_MADE


def load_register(path: str | Path) -> dict[str, Block]:
    """Load the blocks by name; raise a `ConfigError` that names an invalid entry."""
    known = {field.name for field in fields(Block)} - {"name"}
    content = OmegaConf.to_container(OmegaConf.load(path))
    register = {}
    for key, entry in content.items() if isinstance(content, dict) else ():
        name = str(key)
        if unknown := set(entry) - known:
            raise ConfigError(
                f"{path}: {name} has {', '.join(sorted(unknown))}; valid: {', '.join(sorted(known))}"
            )
        if not entry.get("file") or not (entry.get("runs") or entry.get("show")):
            raise ConfigError(f"{path}: {name} needs a file, and runs or show")
        register[name] = Block(name, **entry)
    return register


def find_blocks(text: str) -> dict[str, DocumentBlock]:
    """Find the blocks of a document by name; raise a `ConfigError` for markers that do not match."""
    found = {}
    for match in BLOCK.finditer(text):
        *commands, provenance = match["notes"].splitlines()
        if match["name"] in found or MARKER.search(match["content"]):
            raise ConfigError(f"the block {match['name']} occurs twice, or contains another block")
        found[match["name"]] = DocumentBlock(tuple(commands), provenance, match["content"])
    if len(MARKER.findall(text)) != 2 * len(found):
        raise ConfigError("a marker of a block is broken: each `begin` line needs one `end` line after it")
    return found


def replace_block(text: str, block: Block, provenance: str, content: str) -> str:
    """Replace what is between the markers of `block` by its commands, `provenance` and `content`."""
    if block.name not in find_blocks(text):
        raise ConfigError(f"{block.file} has no block {block.name}: add its two markers")
    notes = "\n".join([*block.commands, provenance])
    made = f"<!-- begin {block.name}: made by python scripts/docs.py {block.name}\n{notes} -->\n"
    made += f"{content.rstrip()}\n<!-- end {block.name} -->"
    return BLOCK.sub(lambda match: made if match["name"] == block.name else match[0], text)


def remove_blocks(text: str) -> str:
    return BLOCK.sub("", text)


def format_output(output: str, block: Block) -> str:
    """The output of a command, or the file that it wrote, as the document shows it."""
    if block.take:
        title, _, body = output.partition("\n")
        output = f"{title.removeprefix('### ')}\n{body.partition(chr(10) + '### ')[0]}"
    for pattern in block.without:
        output = re.sub(pattern, "", output, flags=re.MULTILINE)
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    lines = ["```", *lines, "```"] if block.fenced else lines
    return "\n".join(lines) + "\n"


def mask_numbers(content: str) -> list[str]:
    """The layout of a block: the distinct rows of its tables, with `#` in place of numbers.

    If there are tables with borders, the sentences below them are left out, as they depend on the numbers. Otherwise all
    words count, wherever a line is broken, except the settings chosen per fold.
    """
    # An epoch is a number, or "each" where folds differ; a verdict follows from numbers.
    masked = re.sub(rf"[−+]?\d[\d.,]*(?:e-?\d+)?|\b(?:each|{VERDICTS})\b", "#", content)
    lines = [" ".join(re.sub(r"[─━┏┓┗┛┡┩└┘├┤┳╇┴┼*:-]+", "", line).split()) for line in masked.splitlines()]
    rows = [line for line in lines if re.search(r"[│┃|]", line)]
    words = " ".join(line for line in lines if line and not line.startswith("chosen in"))
    return list(dict.fromkeys(rows)) or [words]
