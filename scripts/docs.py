"""Make the blocks of the documents that come from commands:

python scripts/docs.py                 list them
python scripts/docs.py first_table     make these again; runs in outputs/docs are resumed, or reused if they have finished
python scripts/docs.py --cheap         all that take no more than a few minutes; --fresh trains their runs anew, as `make docs` does
"""

import argparse
import sys
from pathlib import Path

from docgen.blocks import Block, find_blocks, load_register, replace_block
from docgen.remake import make_block, missing_data

from egin_dgl.errors import ConfigError, EginError
from egin_dgl.files import write_text

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    options = parse(sys.argv[1:])
    try:
        register = load_register(ROOT / "docs" / "blocks.yaml")
        if unknown := [name for name in options.names if name not in register]:
            raise ConfigError(f"no block {', '.join(unknown)}; valid: {', '.join(register)}")
        names = options.names or [name for name in register if options.cheap and not register[name].long]
        for name in names:
            remake(register[name], options.fresh)
        if not names:
            print("\n".join(describe(block) for block in register.values()))
    except (EginError, OSError) as error:
        sys.exit(f"error: {error}")


def remake(block: Block, fresh: bool) -> None:
    if reason := missing_data(block):
        print(f"{block.name} is not made: {reason}")
        return
    provenance, content = make_block(block, ROOT, ROOT / "outputs" / "docs" / block.name, fresh)
    path = ROOT / block.file
    write_text(path, replace_block(path.read_text(encoding="utf-8"), block, provenance, content))
    print(f"{block.name} in {block.file}: {provenance}")


def describe(block: Block) -> str:
    found = find_blocks((ROOT / block.file).read_text(encoding="utf-8")).get(block.name)
    state = found.provenance if found else "no markers there"
    cost = "long" if block.long else "cheap"
    return "\n".join([f"{block.name} ({block.file}, {cost}; {state})", *(f"    {c}" for c in block.commands)])


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="blocks of docs/blocks.yaml")
    parser.add_argument("--cheap", action="store_true", help="all that are not long")
    parser.add_argument("--fresh", action="store_true", help="delete their runs and train anew")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
