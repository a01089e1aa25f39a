"""Make the blocks of the documents that come from commands:

python scripts/docs.py                 list them
python scripts/docs.py first_table     make these again; runs in outputs/docs are gone on with, or taken if they have ended
python scripts/docs.py --cheap         all that take no more than a few minutes; --fresh trains their runs anew, as `make docs` does
"""

import argparse
import sys
from pathlib import Path

try:
    import egin_dgl.with_dgl  # noqa: F401
except ImportError as error:
    sys.exit(f"error: {error}")

from egin_dgl.errors import ConfigError, EginError
from egin_dgl.files import write_text
from egin_dgl.reporting.documents.blocks import Block, find_blocks, load_register, put_block
from egin_dgl.reporting.documents.remake import make_block, missing_data

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    options = parse(sys.argv[1:])
    try:
        register = load_register(ROOT / "docs" / "blocks.yaml")
        if unknown := [name for name in options.names if name not in register]:
            raise ConfigError(f"there is no block {', '.join(unknown)}; there are: {', '.join(register)}")
        names = options.names or [name for name in register if options.cheap and not register[name].long]
        for name in names:
            remake(register[name], options.fresh)
        if not names:
            print("\n".join(described(block) for block in register.values()))
    except (EginError, OSError) as error:
        sys.exit(f"error: {error}")


def remake(block: Block, fresh: bool) -> None:
    if reason := missing_data(block):
        print(f"{block.name} is left as it is: {reason}")
        return
    made_with, content = make_block(block, ROOT, ROOT / "outputs" / "docs" / block.name, fresh)
    path = ROOT / block.file
    write_text(path, put_block(path.read_text(encoding="utf-8"), block, made_with, content))
    print(f"{block.name} in {block.file}: {made_with}")


def described(block: Block) -> str:
    written = find_blocks((ROOT / block.file).read_text(encoding="utf-8")).get(block.name)
    state = written.provenance if written else "no markers there"
    cost = "long" if block.long else "cheap"
    return "\n".join([f"{block.name} ({block.file}, {cost}; {state})", *(f"    {c}" for c in block.commands)])


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="blocks of docs/blocks.yaml")
    parser.add_argument("--cheap", action="store_true", help="all that are not long")
    parser.add_argument("--fresh", action="store_true", help="throw away their runs and train anew")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
