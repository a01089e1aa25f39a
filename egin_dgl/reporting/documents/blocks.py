"""Blocks of a document that a command makes: the register of all of them, and their place between two markers.

    <!-- begin first_table: made by python scripts/docs.py first_table
    python scripts/train.py reproducible=any
    seed 0, egin-dgl 0.1.0, torch 2.13.0, dgl 1.1.3 -->
    what the command printed
    <!-- end first_table -->

The lines between are the commands, as the register has them, and the seed and versions they were run with; a block whose
numbers no such command has made yet says so in the last of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from omegaconf import OmegaConf

from egin_dgl.errors import ConfigError

UNMADE = "numbers from before: to be made again"
BLOCK = re.compile(
    r"^<!-- begin (?P<name>\w+): made by python scripts/docs\.py (?P=name)\n(?P<notes>.*?) -->\n"
    r"(?P<content>.*?)^<!-- end (?P=name) -->$",
    re.DOTALL | re.MULTILINE,
)
MARKER = re.compile(r"^<!-- (?:begin|end) \w+", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One entry of the register; FOLDER in a command is the block's own folder of runs."""

    name: str
    file: str  # the document, from the root of the project
    runs: Sequence[str] = ()  # training commands, each with a folder of its own in FOLDER
    show: str | None = None  # the command whose output is the block; without one, the last run shows itself
    take: str | None = None  # a Markdown file that `show` writes, whose first part is the block instead
    fenced: bool = False  # output of a terminal, which Markdown must leave as it is
    without: Sequence[str] = ()  # patterns that are cut out of it, such as seconds
    columns: int = 80  # of the terminal
    needs: Sequence[str] = ()  # TU datasets that must be at hand
    long: bool = False  # more than a few minutes
    tiny: str = "trainer.epochs=2 cv.k=3"  # added to its runs, a test sees the same layout in seconds
    tiny_show: str = ""  # the same, added to `show`

    @property
    def commands(self) -> tuple[str, ...]:
        return (*self.runs, *([self.show] if self.show else []))


@dataclass(frozen=True)
class Written:
    """A block as it stands in a document."""

    commands: tuple[str, ...]
    provenance: str
    content: str

    @property
    def made(self) -> bool:
        return self.provenance != UNMADE


def load_register(path: str | Path) -> dict[str, Block]:
    """The blocks by name; a wrong entry is told by its name."""
    known = {field.name for field in fields(Block)} - {"name"}
    content = OmegaConf.to_container(OmegaConf.load(path))
    register = {}
    for key, entry in content.items() if isinstance(content, dict) else ():
        name = str(key)
        if wrong := set(entry) - known:
            raise ConfigError(
                f"{path}: {name} has {', '.join(sorted(wrong))}; valid: {', '.join(sorted(known))}"
            )
        if not entry.get("file") or not (entry.get("runs") or entry.get("show")):
            raise ConfigError(f"{path}: {name} needs a file, and runs or show")
        register[name] = Block(name, **entry)
    return register


def find_blocks(text: str) -> dict[str, Written]:
    """The blocks of a document, by name; markers that do not belong together are an error."""
    found = {}
    for match in BLOCK.finditer(text):
        *commands, provenance = match["notes"].splitlines()
        if match["name"] in found or MARKER.search(match["content"]):
            raise ConfigError(f"the block {match['name']} is there twice, or has another block in it")
        found[match["name"]] = Written(tuple(commands), provenance, match["content"])
    if len(MARKER.findall(text)) != 2 * len(found):
        raise ConfigError(
            "a marker of a block is broken: each needs one `begin` and, after it, one `end` line"
        )
    return found


def put_block(text: str, block: Block, provenance: str, content: str) -> str:
    """`text` with this content, and the block's commands as they are now, in place of what is between its markers."""
    if block.name not in find_blocks(text):
        raise ConfigError(f"{block.file} has no block {block.name}: put its two markers where it belongs")
    notes = "\n".join([*block.commands, provenance])
    made = f"<!-- begin {block.name}: made by python scripts/docs.py {block.name}\n{notes} -->\n"
    made += f"{content.rstrip()}\n<!-- end {block.name} -->"
    return BLOCK.sub(lambda match: made if match["name"] == block.name else match[0], text)


def outside_blocks(text: str) -> str:
    return BLOCK.sub("", text)


def as_printed(output: str, block: Block) -> str:
    """What a command printed or wrote, as it stands in the document."""
    if block.take:
        title, _, body = output.partition("\n")
        output = f"{title.removeprefix('### ')}\n{body.partition(chr(10) + '### ')[0]}"
    for pattern in block.without:
        output = re.sub(pattern, "", output, flags=re.MULTILINE)
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    lines = ["```", *lines, "```"] if block.fenced else lines
    return "\n".join(lines) + "\n"


def skeleton(content: str) -> list[str]:
    """What stays of a block when its numbers change: the rows of its tables, numbers masked, those that are alike once.

    Where there are tables with borders, the sentences below are left aside: they tell what the numbers come to. A run's
    own table has none: there it is all words, wherever a line is broken, but for the settings that folds chose.
    """
    masked = re.sub(
        r"[−+]?\d[\d.,]*(?:e-?\d+)?|\beach\b", "#", content
    )  # an epoch is a number, or each fold's own
    lines = [" ".join(re.sub(r"[─━┏┓┗┛┡┩└┘├┤┳╇┴┼*:-]+", "", line).split()) for line in masked.splitlines()]
    rows = [line for line in lines if re.search(r"[│┃|]", line)]
    words = " ".join(line for line in lines if line and not line.startswith("chosen in"))
    return list(dict.fromkeys(rows)) or [words]
