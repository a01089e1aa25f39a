"""Predict new graphs with a trained run:

egin predict run=outputs/smiles/egin_e/2026-11-16_12-00-00-000000 input=new.csv
"""

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

from pydantic import Field

from egin_dgl.cli.arguments import TrainedRunOptions, run_with_options
from egin_dgl.options import Count, Flag


class PredictOptions(TrainedRunOptions):
    out: str | None = Field(None, description="CSV to write; null: NAME_predictions.csv, after the input")
    level: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        0.9, description="probability that an interval or label set has the truth; null: without these"
    )
    strict: Flag = Field(False, description="refuse unreadable graphs and labels that training has not seen")
    embeddings: str | None = Field(
        None, description="CSV to write embeddings to, of the fold or of the first"
    )
    at_once: Count = Field(1024, description="graphs read at once")


def main() -> None:
    run_with_options(predict_graphs, PredictOptions, str(__doc__))


def predict_graphs(options: PredictOptions) -> None:
    from egin_dgl.inference.inputs import count_graphs
    from egin_dgl.inference.predict_file import format_predictions, predict_file
    from egin_dgl.parallel import use_processes
    from egin_dgl.terminal import make_console, progress_bar
    from egin_dgl.training.parallel.resources import cores
    from egin_dgl.training.parallel.workers import chunk_processes, one_thread

    run = options.load(options.level)
    name = Path(options.input).name.split(".")[0] if os.path.exists(options.input) else "molecule"
    out = Path(options.out or f"{name}_predictions.csv")
    embeddings = Path(options.embeddings) if options.embeddings else None
    # The input is closed before an error is printed: at exit, modules that read it may be unloaded already.
    with (
        one_thread(),
        use_processes(chunk_processes(len(cores()) if run.folds[0].device.type == "cpu" else 1)),
        closing(run.open_chunks(options.input, options.at_once)) as chunks,
        progress_bar("graphs", count_graphs(options.input)) as set_done,
    ):
        summary = predict_file(
            run,
            chunks,
            out,
            embeddings,
            options.strict,
            lambda counts: set_done(counts.graphs + counts.skipped),
        )
    make_console().print(format_predictions(run, summary, out), highlight=False, soft_wrap=True)
