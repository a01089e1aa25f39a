"""Predictions of a trained run for new graphs:

egin predict run=outputs/smiles/egin_e/2026-11-16_12-00-00-000000 input=new.csv
"""

import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from egin_dgl.cli.keywords import help_text, read_words
from egin_dgl.ranges import Count


def option(help: str, **default: object):
    return field(metadata={"help": help}, **default)  # type: ignore[call-overload]


@dataclass(frozen=True)
class PredictOptions:
    run: str = option("folder of a run")
    input: str = option("graphs: a CSV of SMILES, a folder of CSVs, a .bin of DGL, or a TU dataset")
    out: str | None = option("CSV to write; null: NAME_predictions.csv, after the input", default=None)
    fold: int | None = option("one fold's model; null: all folds, their probabilities averaged", default=None)
    strict: bool = option(
        "refuse labels never seen in training and what cannot be read, instead of counting them",
        default=False,
    )
    embeddings: str | None = option("CSV to write embeddings into, of the fold or of the first", default=None)
    at_once: Count = option("graphs read at once", default=1024)
    device: str = option("auto, cpu, cuda, cuda:1", default="auto")
    trust: bool = option("let the folder name model classes that are not of this package", default=False)


def parse(words: list[str]) -> PredictOptions:
    return read_words(PredictOptions, words)


def main() -> None:
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print(help_text(PredictOptions, str(__doc__)))
        return
    predict(parse(words))


def predict(asked: PredictOptions) -> None:
    from rich.console import Console

    from egin_dgl.inference.predict_file import predict_file
    from egin_dgl.inference.trained_run import load_run
    from egin_dgl.reporting.one_run.predictions import format_predictions, format_speed
    from egin_dgl.training.device import pick_device
    from egin_dgl.training.parallel.workers import one_thread

    run = load_run(asked.run, str(pick_device(asked.device)), asked.trust)
    if asked.fold is not None:
        run = run.select_fold(asked.fold)
    source = Path(asked.input)
    out = Path(asked.out or f"{source.name.split('.')[0]}_predictions.csv")
    vectors = Path(asked.embeddings) if asked.embeddings else None
    console = Console(stderr=True)
    # The input is closed before an error is printed: at exit, modules that read it may be unloaded already.
    with (
        one_thread(),
        closing(run.read_chunks(asked.input, asked.at_once)) as chunks,
        console.status("reading") as status,
    ):
        summary = predict_file(
            run,
            chunks,
            out,
            vectors,
            asked.strict,
            lambda s: status.update(f"{s.graphs:,} graphs, {format_speed(s)}"),
        )
    Console().print(format_predictions(run, summary, out), highlight=False, soft_wrap=True)
