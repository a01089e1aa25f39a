"""Print the table of the zoo; `python scripts/docs.py zoo` puts it into the README."""

from egin_dgl.cli.main import run

if __name__ == "__main__":
    run("zoo")
