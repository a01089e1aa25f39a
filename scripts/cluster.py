"""Runs on a cluster that loses a node: killed in the middle, resumed, and compared with an unbroken one.

    make test-cluster                         # installs Ray into .venv-cluster and runs all
    python scripts/cluster.py ray submitit    # some of: ray, ray_retries, submitit, torchrun

The nodes are processes on this machine, connected through the loopback interface: a Ray cluster of two nodes, two jobs of
submitit's local executor, two agents of torchrun. Exits with 1 unless every run ends with the numbers of an unbroken one.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from attacks.directories import find_difference

from egin_dgl.reporting.formatting import pluralize

TRAIN = Path(__file__).resolve().parent / "train.py"
RUN = [
    *("dataset=bonds", "dataset.graphs=200", "model.hidden_dim=16", "model.num_layers=2"),
    *("trainer.epochs=80", "trainer.checkpoint_every=5", "trainer.batch_size=16"),
]
SWEEP = ["-m", *RUN, "model=egin,egin_e,gin", "cv.fold=0"]
PATIENCE = 600  # seconds for a command


def train(*words: str, **environment: str) -> subprocess.Popen:
    command = [sys.executable, TRAIN, *words]
    return start(command, **environment)


def start(command: list, **environment: str) -> subprocess.Popen:
    """Start a command in a process group of its own."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True, **quiet)


def finish(*processes: subprocess.Popen) -> list[int]:
    """The exit codes of processes that end by themselves."""
    return [process.wait(PATIENCE) for process in processes]


def wait_for(found: Callable[[], bool], *processes: subprocess.Popen) -> None:
    end = time.monotonic() + PATIENCE
    while not found():
        if time.monotonic() > end or any(process.poll() is not None for process in processes):
            sys.exit("error: the run ended before a node could be killed")
        time.sleep(0.05)


def checkpoints(path: Path) -> list[Path]:
    return [file for file in path.rglob("last.pt") if not (file.parent.parent / "summary.json").exists()]


def finished(path: Path) -> int:
    return len(list(path.rglob("summary.json")))


def compare(whole: Path, broken: Path, name: str, seen: str) -> bool:
    """Print what was seen, and whether all runs of two directories have the same numbers."""
    runs = [file.parent.relative_to(whole) for file in sorted(whole.rglob("summary.json"))]
    missing = [run for run in runs if not (broken / run / "summary.json").exists()]
    differences = [
        str(run) for run in runs if run not in missing and find_difference(whole / run, broken / run)
    ]
    good = runs and not missing and not differences
    verdict = "the numbers of an unbroken one" if good else f"missing: {missing}, different: {differences}"
    print(f"{name}: {seen}; {pluralize(len(runs), 'run')}: {verdict}", flush=True)
    return bool(good)


@contextmanager
def ray_cluster() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a cluster of two nodes of one CPU each, and a function that kills the second node."""
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory() as plasma:
        small = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "plasma_directory": plasma}
        cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
        try:
            node = cluster.add_node(**small)
            cluster.wait_for_nodes()
            yield cluster.address, lambda: cluster.remove_node(node, allow_graceful=False)
        finally:
            cluster.shutdown()


def check_ray(directory: Path, whole: Path) -> bool:
    broken = directory / "ray"
    with ray_cluster() as (address, kill_node):
        launcher = connect_ray(address)
        once = "+hydra.launcher.ray.remote.max_retries=0"
        sweep = train(*SWEEP, *launcher, once, f"hydra.sweep.dir={broken}")
        wait_for(lambda: len(checkpoints(broken)) >= 2, sweep)
        kill_node()
        (code,) = finish(sweep)
        seen = f"a node killed while two of three jobs ran, exit code {code}, {finished(broken)} finished"
        finish(train(f"resume={broken}", *launcher))
    return compare(whole, broken, "ray", f"{seen}; resumed")


def check_ray_retries(directory: Path, whole: Path) -> bool:
    broken = directory / "ray_retries"
    with ray_cluster() as (address, kill_node):
        sweep = train(*SWEEP, *connect_ray(address), f"hydra.sweep.dir={broken}")
        wait_for(lambda: len(checkpoints(broken)) >= 2, sweep)
        kill_node()
        (code,) = finish(sweep)
    seen = f"a node killed, its job started again by Ray on the other, exit code {code}"
    return compare(whole, broken, "ray, by its own retries", seen)


def connect_ray(address: str) -> list[str]:
    """Arguments for an existing cluster; the launcher would set the memory of one of its own, which Ray refuses."""
    return [
        "hydra/launcher=ray",
        f"hydra.launcher.ray.init.address={address}",
        "+hydra.launcher.ray.init.object_store_memory=null",
    ]


def check_submitit(directory: Path, whole: Path) -> bool:
    broken = directory / "submitit"
    launcher = ["hydra/launcher=submitit_local", f"hydra.launcher.submitit_folder={directory}/.submitit"]
    sweep = train(*SWEEP, *launcher, f"hydra.sweep.dir={broken}")
    wait_for(lambda: bool(checkpoints(broken)), sweep)
    workers = [p for p in psutil.Process(sweep.pid).children(True) if "submitit.core._submit" in p.cmdline()]
    workers[0].kill()
    (code,) = finish(sweep)
    seen = f"one of {len(workers)} jobs killed, exit code {code}, {finished(broken)} finished"
    finish(train(f"resume={broken}", *launcher))
    return compare(whole, broken, "submitit_local", f"{seen}; resumed")


def start_agents(*words: str) -> list[subprocess.Popen]:
    """Two agents of torchrun with one rank each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meet = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=run"]
    agent = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", *meet]
    return [start([*agent, TRAIN, *words], GLOO_SOCKET_IFNAME="lo") for _ in range(2)]


def check_torchrun(directory: Path, _: Path) -> bool:
    whole, broken = directory / "ranks", directory / "torchrun"
    finish(train(*RUN, "cv=holdout", "trainer.ranks=2", f"hydra.run.dir={whole}"))
    agents = start_agents(*RUN, "cv=holdout", f"hydra.run.dir={broken}")
    wait_for(lambda: bool(checkpoints(broken)), *agents)
    node = psutil.Process(agents[1].pid)
    for process in [node, *node.children(recursive=True)]:
        process.kill()
    codes = finish(*agents)
    seen = f"an agent and its rank killed, exit codes {codes}, {finished(broken)} finished"
    finish(*start_agents(f"resume={broken}"))
    return compare(whole, broken, "torchrun", f"{seen}; resumed")


CHECKS = {
    "ray": check_ray,
    "ray_retries": check_ray_retries,
    "submitit": check_submitit,
    "torchrun": check_torchrun,
}


def main(names: list[str]) -> int:
    if unknown := set(names) - set(CHECKS):
        sys.exit(f"error: there is no {', '.join(unknown)}; valid: {', '.join(CHECKS)}")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        whole = directory / "whole"
        if set(names or CHECKS) - {"torchrun"}:
            finish(train(*SWEEP, f"hydra.sweep.dir={whole}"))
        return 0 if all([CHECKS[name](directory, whole) for name in names or CHECKS]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
