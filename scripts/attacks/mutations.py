"""Changes that an accident or an attacker makes: of bytes, of single bits, and of JSON values and keys."""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

CANARY = "/tmp/egin_canary_of_a_test"  # never exists
VALUES: list[Any] = [
    *(None, True, -1, 0, 7, 2.5, 10**30, 1e308, float("nan"), float("inf")),
    *([], {}, [None], {"": None}, json.loads("[" * 90 + "]" * 90)),
    *("", "x", "0", "../../../x", CANARY, "/dev/zero", "http://127.0.0.1:9/x", "os.mkdir", "antigravity"),
    *("a" * 5000, "\x1b[2J\x07", "\u202e", "\ud800", "line\nbreak", "[/x]", "${oc.env:HOME}", "${now:%Y}"),
    *("???", "cuda:7", "%s{0}"),
    {"_target_": "os.mkdir", "path": CANARY},
    [{"_target_": "os.mkdir", "path": CANARY}],
    {"x._target_": ["os.mkdir"]},
]
KEYS = ["", "x", "_target_", "x._target_", "_args_", "_partial_", "a.b", "line\nbreak", "\x1b[2J"]
KEYS += ["__class__", "0", "${x}", "self"]


def damage_bytes(content: bytes, random: Random) -> bytes:
    """A few bytes changed, cut out, put in or doubled."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 4)):
        changed = changed or bytearray(b"\n")
        place, kind = random.randrange(len(changed)), random.randrange(4)
        if kind == 0:
            changed[place] = random.randrange(256)
        elif kind == 1:
            del changed[place : place + random.randint(1, 40)]
        else:
            more = (
                random.randbytes(random.randint(1, 8)) if kind == 2 else changed[max(0, place - 20) : place]
            )
            changed[place:place] = more
    return bytes(changed)


def damage_text(content: bytes, random: Random) -> bytes:
    """Characters that mean something in a table dropped, doubled, exchanged and put in."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 3)):
        place, how = random.randrange(len(changed)), random.randrange(4)
        if how == 0:
            del changed[place : place + random.randint(1, 5)]
        elif how == 1:
            changed[place:place] = changed[place : place + random.randint(1, 9)]
        elif how == 2:
            changed[place] = random.choice(b',;\t\n\r"\x00\xff 0.x-')
        else:
            changed[place:place] = bytes([random.randrange(256)])
        changed = changed or bytearray(b"\n")
    return bytes(changed)


def flip_bit(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def mutate_json(content: Any, random: Random) -> Any:
    """A copy with one to three keys or values removed, renamed or replaced, without its checksums: they protect from
    damage, not from malice."""
    content = copy.deepcopy(content)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        *path, key = random.choice(list(list_paths(content)))
        inner = content
        for step in path:
            inner = inner[step]
        way = random.randrange(6)
        if way == 0:
            del inner[key]
        elif way == 1 and isinstance(inner, dict):
            inner[random.choice(KEYS)] = inner.pop(key)
        elif way == 2 and isinstance(inner, dict):
            inner[random.choice(KEYS)] = random.choice(VALUES)
        else:
            inner[key] = copy.deepcopy(random.choice(VALUES))
        if not content:
            break
    for seal in ("crc32", "settings_crc32"):
        content.pop(seal, None)
    return content


def list_paths(content: Any, path: tuple = ()) -> Iterator[tuple]:
    """The path of every key and value; of a long list those of its beginning."""
    items: Any = ()
    if isinstance(content, dict):
        items = content.items()
    elif isinstance(content, list):
        items = enumerate(content)
    for key, value in list(items)[:60]:
        yield (*path, key)
        yield from list_paths(value, (*path, key))
