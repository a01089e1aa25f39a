"""Time and memory from a table of molecules to a trained epoch and to predictions: HIV (MoleculeNet), several times over.

    python scripts/benchmark.py large_set [--path hiv.csv] [--copies 5] [--rows 0] [--features tu] [--limit 1.5]

The table is --path, or hiv.csv in the directory EGIN_MOLECULES; --rows takes its first rows only. Three commands run one after the
other, with a cache of their own: the first epoch reads the molecules, the second finds them in the cache, then all are predicted.
--limit adds a fourth, which trains from the cache by the definition of the model, in a control group with so many GB of memory, cached
pages of files included; it needs root, and forgets what the system has cached of files.
Memory is that of all processes of a command together, without pages of mapped files, which the system takes back when it needs
them; it is sampled four times a second.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from egin_dgl.reproducibility import processor_name
from egin_dgl.training.parallel.resources import cores

SCRIPTS = Path(__file__).resolve().parent.parent


def copy_table(path: Path, copies: int, rows: int, target: Path) -> int:
    """Write the rows of a table several times, with other ids; return their number."""
    with path.open(newline="") as source:
        header, *lines = csv.reader(source)
    lines = lines[: rows or None]
    with target.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([f"{first}_{copy}", *others] for copy in range(copies) for first, *others in lines)
    return copies * len(lines)


def descendants(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it has ended
            continue
        for child in children:
            yield from descendants(int(child))


def anonymous_bytes(pid: int) -> int:
    try:
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


@contextmanager
def control_group(limit: int) -> Iterator[Path]:
    """A control group with at most `limit` bytes of memory, version 2 or 1; yields the file to which its processes are added."""
    root = Path("/sys/fs/cgroup")
    parent, name = (
        (root / "memory", "memory.limit_in_bytes") if (root / "memory").is_dir() else (root, "memory.max")
    )
    group = parent / f"egin_dgl_{os.getpid()}"
    group.mkdir()
    try:
        (group / name).write_text(str(limit))
        Path("/proc/sys/vm/drop_caches").write_text("1")  # cached pages belong to the group that read them
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def measure(
    command: list[str], environment: dict[str, str], processes: Path | None = None
) -> tuple[float, int]:
    """Seconds of a command, and the most memory that it and its processes had; in the control group of `processes`, if given."""
    start, most = time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=output,
            preexec_fn=processes and (lambda: processes.write_text(str(os.getpid()))),
        )
        while process.poll() is None:
            most = max(most, sum(map(anonymous_bytes, descendants(process.pid))))
            time.sleep(0.25)
        if process.returncode:
            output.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{output.read()}")
    return time.perf_counter() - start, most


def show(title: str, seconds: float, most: int) -> None:
    print(f"| {title} | {seconds:.0f} | {most / 1e9:.1f} |", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmark.py large_set")
    parser.add_argument("--path", type=Path, default=Path(os.environ.get("EGIN_MOLECULES", ".")) / "hiv.csv")
    parser.add_argument("--target", default="active", help="column of the table")
    parser.add_argument("--copies", type=int, default=5, help="of the table")
    parser.add_argument("--rows", type=int, default=0, help="of the table to take; 0: all")
    parser.add_argument("--limit", type=float, help="GB of memory of a fourth command")
    parser.add_argument("--features", choices=("tu", "rich"), default="tu")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        table = directory / "molecules.csv"
        molecules = copy_table(options.path, options.copies, options.rows, table)
        train = [sys.executable, str(SCRIPTS / "train.py"), "dataset=smiles", f"dataset.path={table}"]
        train += [f"dataset.target={options.target}", f"dataset.features={options.features}"]
        train += ["dataset.on_invalid=skip", "cv=holdout", "trainer.epochs=1", "trainer.batch_size=256"]
        predict = [sys.executable, str(SCRIPTS / "predict.py"), f"run={directory / 'run'}", f"input={table}"]
        commands = {
            "train an epoch, from the table": [*train, f"hydra.run.dir={directory / 'run'}"],
            "train an epoch, from the cache": [*train, f"hydra.run.dir={directory / 'again'}"],
            "predict all molecules": [*predict, f"out={directory / 'predictions.csv'}"],
        }
        environment = os.environ | {"EGIN_CACHE": str(directory / "cache")}
        print(
            f"{molecules:,} molecules, features={options.features}; {processor_name()}, {len(cores())} cores\n"
        )
        print("| command | seconds | memory, GB |\n|---|---|---|")
        for title, command in commands.items():
            show(title, *measure(command, environment))
        if options.limit:
            small = ["trainer.fast=false", "trainer.ranks=1", "trainer.bn_statistics=sample"]
            title = f"train an epoch, from the cache, with at most {options.limit:g} GB: {' '.join(small)}"
            limited = [*train, *small, f"hydra.run.dir={directory / 'limited'}"]
            with control_group(int(options.limit * 1e9)) as processes:
                show(title, *measure(limited, environment, processes))
        size = sum(file.stat().st_size for file in (directory / "cache").rglob("*") if file.is_file())
        print(f"\nThe cache has {size / 1e9:.1f} GB.")
