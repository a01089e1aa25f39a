"""One run on the terminal."""

from collections import Counter

from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.reporting.formatting import CHOSEN, PERCENT, marked, span


def summary_table(summary: dict, width: int = 80) -> Table:
    """One run: a row per protocol, the majority class beside it for scale. Kernel machines have C in place of epochs.

    With borders it would not fit 80 columns; in fewer than that, of the terminal's `width`, it stands closer.
    """
    single = summary["folds"] == 1  # nothing to take a spread or an interval of
    title = f"{summary['model']} on {summary['dataset']}: test {MAIN.name} {over_folds(summary)}"
    wide = width >= 80
    table = Table(
        title=title, title_justify="left", box=SIMPLE, show_edge=wide, padding=(0, 1) if wide else (0, 0)
    )
    choice = what_is_chosen(summary)
    table.add_column("protocol", no_wrap=True)
    for header in (f"{MAIN.name}, %" if single else "mean ± std, %", *([] if single else ["95 %"]), choice):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column(f"{choice} chosen on")
    for name, result in summary["protocols"].items():
        if result is None:
            continue
        style = "bold" if name == summary["headline"] else ("dim" if result["optimistic"] else None)
        chosen = listed(result.get(choice, []))
        spread = [PERCENT.spread(result["mean"], result["std"]), between(result["interval"])]
        table.add_row(
            name,
            *([PERCENT.text(result["mean"])] if single else spread),
            "each" if len(chosen) > 1 else span(chosen),
            chosen_on(name, result),
            style=style,
        )
    table.add_section()
    table.add_row("majority class", PERCENT.text(summary["majority_accuracy"]))
    return table


def what_is_chosen(summary: dict) -> str:
    """What a protocol reads a test part at: an epoch, or the penalty C of a kernel machine."""
    return "C" if "C" in summary["protocols"][summary["headline"]] else "epoch"


def chosen_on(protocol: str, result: dict) -> str:
    """An earlier version did not say how many epochs last_20 had."""
    averaged = span(listed(result["averaged"])) if "averaged" in result else "20 or fewer"
    return CHOSEN[protocol][1].format(averaged=averaged)


def over_folds(summary: dict) -> str:
    """What a mean of a run is taken over, in words."""
    folds, k = summary["folds"], summary["k"]
    if summary.get("holdout"):
        return "on one split"
    return f"over {folds} fold{'s' * (folds > 1)}" + (f" of {k}" if folds < k else "")


def listed(value: float | list[float]) -> list[float]:
    """summary.json has one number where all folds agree."""
    return value if isinstance(value, list) else [value]


def between(interval: list[float] | None) -> str:
    """An interval of scores, which lie between 0 and 1; nothing for one fold, which has none."""
    return f"{100 * max(0, interval[0]):.1f} – {100 * min(1, interval[1]):.1f}" if interval else ""


def headline_label(summary: dict) -> str:
    return marked(summary["headline"], summary["protocols"][summary["headline"]]["optimistic"])


def metrics_line(summary: dict) -> str:
    """The other metrics of the headline, and what was chosen fold by fold: by an inner selection, or the C of kernels."""
    means = {name: value["mean"] for name, value in summary["metrics"].items() if name != MAIN.name}
    found = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items() if mean is not None)
    penalties = listed(summary["protocols"][summary["headline"]].get("C", []))
    by_fold = summary.get("chosen", []) + [{"C": f"{C:g}"} for C in penalties if len(penalties) > 1]
    choices = Counter(", ".join(f"{key}={value}" for key, value in chosen.items()) for chosen in by_fold)
    told = [f"chosen in {n} of {summary['folds']} folds: {text}" for text, n in choices.most_common()]
    return "\n".join([f"{headline_label(summary)}, other metrics: {found}", *told])
