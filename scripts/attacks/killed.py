"""Runs killed at random moments, as by a power cut, and resumed: the same digits as of a run that nobody disturbed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from attacks.attempts import Fall
from attacks.directories import find_difference
from egin_dgl.runs.run_dir import RunDir

SCRIPT = Path(__file__).resolve().parent.parent / "train.py"
SMALL = ["dataset=bonds", "dataset.graphs=60", "cv.k=3", "model.num_layers=2", "model.hidden_dim=8"]
OPTIONS = [*SMALL, "trainer.epochs=40", "trainer.checkpoint_every=5", "trainer.fold_workers=2"]
MAX_SECONDS = 300


class KilledRuns:
    """The first attempt trains an undisturbed run below `place`, which gives the numbers and the time to kill within."""

    def __init__(self, place: Path, options: list[str] | None = None):
        self.place, self.options = place, options or OPTIONS
        self.whole, self.seconds = place / "whole", 0.0

    def __call__(self, random: Random) -> None:
        if not self.seconds:
            start = time.monotonic()
            self.train(self.whole)
            self.seconds = time.monotonic() - start
        path, moments = self.place / "broken", []
        shutil.rmtree(path, ignore_errors=True)
        for _ in range(random.randint(1, 3)):
            # The first part of a run imports libraries; what is killed there leaves nothing.
            moments.append(random.uniform(0.2, 1) * self.seconds)
            self.kill_after(moments[-1], path, random.random() < 0.5)
        try:
            self.train(path)
        except Fall as fall:
            raise Fall(f"killed after {moments}: {fall}") from fall
        if difference := find_difference(self.whole, path):
            raise Fall(f"killed after {moments}: other numbers in {difference}")

    def arguments(self, path: Path) -> list[str]:
        known = [f"resume={path}"] if RunDir(path).exists else [*self.options, f"hydra.run.dir={path}"]
        return [sys.executable, str(SCRIPT), *known]

    def kill_after(self, seconds: float, path: Path, with_workers: bool) -> None:
        """SIGKILL to the process alone, or to its workers as well."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(self.arguments(path), start_new_session=True, **quiet)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL) if with_workers else process.kill()
            process.wait()

    def train(self, path: Path) -> None:
        try:
            done = subprocess.run(self.arguments(path), capture_output=True, text=True, timeout=MAX_SECONDS)
        except subprocess.TimeoutExpired:
            raise Fall(f"it had not ended after {MAX_SECONDS} s") from None
        if done.returncode or "Traceback" in done.stderr:
            raise Fall(f"it ended with {done.returncode}: {done.stderr.strip()[-1500:]}")
