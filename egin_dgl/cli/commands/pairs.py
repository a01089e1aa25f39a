"""Which pairs of graphs do models distinguish, untrained and trained on each pair:

egin pairs
egin pairs model=gin,egin,egin_m pairs=8 out=pairs
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from egin_dgl.cli.arguments import parse_options, run_with_options
from egin_dgl.cli.config_dirs import compose_config, conf_dir, list_choices
from egin_dgl.errors import ConfigError, did_you_mean
from egin_dgl.options import Count, CountOrZero, Options, Seed


class PairsOptions(Options):
    model: str | None = Field(None, description="models, separated by commas; null: all networks of the zoo")
    pairs: Count = Field(4, description="pairs of each category")
    inits: Count = Field(3, description="random initialisations of each untrained model")
    steps: CountOrZero = Field(50, description="training steps on a pair; 0: no training")
    seed: Seed = Field(0, description="of pairs and weights")
    out: str | None = Field(None, description="directory for pairs.md and pairs.csv; null: none")


def main() -> None:
    run_with_options(compare_models_on_pairs, PairsOptions, str(__doc__))


def parse(arguments: Sequence[str]) -> PairsOptions:
    return parse_options(PairsOptions, arguments)


def compare_models_on_pairs(options: PairsOptions) -> None:
    names = choose_models(options.model)  # before modules are loaded that take seconds
    from rich.console import Console
    from rich.progress import track
    from torch import nn

    from egin_dgl.cli.experiment import build
    from egin_dgl.cli.validation import resolve_settings
    from egin_dgl.ewl.pairs import make_pairs
    from egin_dgl.files import write_text
    from egin_dgl.reporting.many_runs.renderers import print_table, to_markdown
    from egin_dgl.reporting.pairs import pairs_csv, pairs_table
    from egin_dgl.terminal import make_console
    from egin_dgl.training.pair_benchmark import model_results, reference_results
    from egin_dgl.training.parallel.workers import one_thread

    makers = {name: build(resolve_settings(compose_config([f"model={name}"])), "model") for name in names}
    makers = {name: make for name, make in makers.items() if issubclass(make.func, nn.Module)}
    if options.model and (others := [name for name in names if name not in makers]):
        raise ConfigError(f"model: {', '.join(others)} is not a network, and has no embeddings to compare")
    pairs = make_pairs(options.pairs, options.seed)
    console = make_console(stderr=True)
    with one_thread():
        found = model_results(pairs, makers, options.inits, options.steps, options.seed)
        shown = track(found, "pairs", total=len(makers) * len(pairs), console=console, transient=True)
        results = [*reference_results(pairs), *(shown if console.is_terminal else found)]
    table = pairs_table(results)
    print_table(table, Console(emoji=False))
    if options.out:
        write_text(Path(options.out) / "pairs.md", to_markdown(table))
        write_text(Path(options.out) / "pairs.csv", pairs_csv(results))


def choose_models(given: str | None) -> list[str]:
    known = list_choices("model", conf_dir())
    names = given.split(",") if given else known
    for name in names:
        if name not in known:
            raise ConfigError(
                f"model: there is no {name!r}; valid: {', '.join(known)}{did_you_mean(name, known)}"
            )
    return names
