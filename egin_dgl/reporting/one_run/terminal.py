"""One run on the terminal."""

from collections import Counter

from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.reporting.units import PERCENT
from egin_dgl.reporting.wording import CHOSEN_ON, span


def summary_table(summary: dict) -> Table:
    """One run: a row per protocol, the majority class beside it for scale. Kernel machines have C in place of epochs."""
    title = f"{summary['model']} on {summary['dataset']}: test accuracy over {summary['folds']} "
    title += "folds" if summary["folds"] > 1 else "fold"
    if summary["folds"] < summary["k"]:
        title += f" of {summary['k']}"
    table = Table(title=title, title_justify="left", box=SIMPLE)  # with borders it would not fit 80 columns
    table.add_column("protocol")
    table.add_column("mean ± std, %", justify="right")
    table.add_column("95 %", justify="right")
    choice = "C" if "C" in summary["protocols"][summary["headline"]] else "epoch"
    table.add_column(choice, justify="right")
    table.add_column(f"{choice} chosen on")
    for name, result in summary["protocols"].items():
        if result is None:
            continue
        style = "bold" if name == summary["headline"] else ("dim" if result["optimistic"] else None)
        chosen = listed(result.get(choice, []))
        # An earlier version did not say how many epochs last_20 had.
        averaged = span(listed(result["averaged"])) if "averaged" in result else "20 or fewer"
        table.add_row(
            name,
            PERCENT.spread(result["mean"], result["std"]),
            between(result["interval"]),
            "each" if len(chosen) > 1 else span(chosen),
            CHOSEN_ON[name].format(averaged=averaged),
            style=style,
        )
    table.add_section()
    table.add_row("majority class", f"{100 * summary['majority_accuracy']:.1f}", "", "", "")
    return table


def listed(value: float | list[float]) -> list[float]:
    """summary.json has one number where all folds agree."""
    return value if isinstance(value, list) else [value]


def between(interval: list[float] | None) -> str:
    """An interval of accuracies, which lie between 0 and 1; nothing for one fold, which has none."""
    return f"{100 * max(0, interval[0]):.1f} – {100 * min(1, interval[1]):.1f}" if interval else ""


def headline_label(summary: dict) -> str:
    name = summary["headline"]
    return f"{name} (optimistic)" if summary["protocols"][name]["optimistic"] else name


def metrics_line(summary: dict) -> str:
    """The other metrics of the headline, and what was chosen fold by fold: by an inner selection, or the C of kernels."""
    found = [
        f"{name} {value['mean']:.3f}"
        for name, value in summary["metrics"].items()
        if value["mean"] is not None and name != "accuracy"
    ]
    lines = [f"{headline_label(summary)}, other metrics: {', '.join(found)}"]
    penalties = listed(summary["protocols"][summary["headline"]].get("C", []))
    chosen_by_fold = summary.get("chosen", []) + [{"C": f"{C:g}"} for C in penalties if len(penalties) > 1]
    choices = Counter(
        ", ".join(f"{key}={value}" for key, value in chosen.items()) for chosen in chosen_by_fold
    )
    lines += [
        f"chosen in {count} of {summary['folds']} folds: {text}" for text, count in choices.most_common()
    ]
    return "\n".join(lines)
