"""The results of one run on the terminal."""

from collections import Counter

from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.reporting.formatting import EPOCH_CHOICE, PERCENT, format_range, protocol_label


def summary_table(summary: dict, width: int = 80) -> Table:
    """A row per protocol, and the majority class for comparison; kernel machines have C in place of epochs.

    The table has no borders and fits 60 columns; below 80 columns it has less padding.
    """
    single = summary["folds"] == 1  # without standard deviation and interval
    title = f"{summary['model']} on {summary['dataset']}: test {MAIN.name} {over_folds(summary)}"
    wide = width >= 80
    table = Table(
        title=title, title_justify="left", box=SIMPLE, show_edge=wide, padding=(0, 1) if wide else (0, 0)
    )
    choice = choice_name(summary)
    table.add_column("protocol", no_wrap=True)
    for header in (
        f"{MAIN.name}, %" if single else "mean ± std, %",
        *([] if single else ["95 % CI"]),
        choice,
    ):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column(f"{choice} chosen on")
    for name, result in summary["protocols"].items():
        if result is None:
            continue
        chosen = as_list(result.get(choice, []))
        mean_std = [PERCENT.mean_std(result["mean"], result["std"]), format_interval(result["interval"])]
        table.add_row(
            name,
            *([PERCENT.text(result["mean"])] if single else mean_std),
            "each" if len(chosen) > 1 else format_range(chosen),
            chosen_on(name, result),
            style="bold" if name == summary["headline"] else ("dim" if result["optimistic"] else None),
        )
    table.add_section()
    table.add_row("majority class", PERCENT.text(summary["majority_accuracy"]))
    return table


def choice_name(summary: dict) -> str:
    """What protocols choose: the epoch of a network or the penalty C of a kernel machine."""
    return "C" if "C" in summary["protocols"][summary["headline"]] else "epoch"


def chosen_on(protocol: str, result: dict) -> str:
    return EPOCH_CHOICE[protocol][1].format(averaged=format_range(as_list(result.get("averaged", []))))


def over_folds(summary: dict) -> str:
    """The folds of which the scores are means."""
    folds, k = summary["folds"], summary["k"]
    if summary.get("holdout"):
        return "on one split"
    return f"over {folds} fold{'s' * (folds > 1)}" + (f" of {k}" if folds < k else "")


def as_list(value: float | list[float]) -> list[float]:
    """summary.json has one number where all folds agree."""
    return value if isinstance(value, list) else [value]


def format_interval(interval: list[float] | None) -> str:
    """An interval of scores, clipped to 0 to 100 %; empty for a single fold."""
    return f"{100 * max(0, interval[0]):.1f} – {100 * min(1, interval[1]):.1f}" if interval else ""


def headline_label(summary: dict) -> str:
    return protocol_label(summary["headline"], summary["protocols"][summary["headline"]]["optimistic"])


def metrics_line(summary: dict) -> str:
    """The other metrics by the headline protocol, and the settings, or C, chosen per fold."""
    means = {name: value["mean"] for name, value in summary["metrics"].items() if name != MAIN.name}
    found = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items() if mean is not None)
    penalties = as_list(summary["protocols"][summary["headline"]].get("C", []))
    by_fold = summary.get("chosen", []) + [{"C": f"{C:g}"} for C in penalties if len(penalties) > 1]
    choices = Counter(", ".join(f"{key}={value}" for key, value in chosen.items()) for chosen in by_fold)
    lines = [f"chosen in {n} of {summary['folds']} folds: {text}" for text, n in choices.most_common()]
    return "\n".join([f"{headline_label(summary)}, other metrics: {found}", *lines])
