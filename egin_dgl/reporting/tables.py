"""Tables on the terminal."""

from collections import Counter

from rich.box import SIMPLE
from rich.table import Table

from egin_dgl.ewl.audit import Audit


def summary_table(summary: dict) -> Table:
    """One run: a row per protocol, the majority class beside it for scale."""
    title = f"{summary['model']} on {summary['dataset']}: test accuracy over {summary['folds']} "
    title += "folds" if summary["folds"] > 1 else "fold"
    if summary["folds"] < summary["k"]:
        title += f" of {summary['k']}"
    table = Table(title=title, title_justify="left", box=SIMPLE)  # with borders it would not fit 80 columns
    table.add_column("protocol")
    table.add_column("mean ± std, %", justify="right")
    table.add_column("95 %", justify="right")
    table.add_column("epoch", justify="right")
    table.add_column("epoch chosen on")
    for name, result in summary["protocols"].items():
        if result is None:
            continue
        style = "bold" if name == summary["headline"] else ("dim" if result["optimistic"] else None)
        epoch = result.get("epoch", "")
        table.add_row(
            name,
            percent(result["mean"], result["std"]),
            between(result["interval"]),
            "each" if isinstance(epoch, list) else str(epoch),
            CHOSEN_ON[name],
            style=style,
        )
    table.add_section()
    table.add_row("majority class", f"{100 * summary['majority_accuracy']:.1f}", "", "", "")
    return table


CHOSEN = {
    "selected": "per fold, on the validation part",
    "common_epoch": "on the test parts together (optimistic)",
    "best_per_fold": "on each test part (most optimistic)",
    "last": "in advance",
    "last_20": "in advance, mean of the last 20",
}
CHOSEN_ON = {
    "selected": "validation",
    "common_epoch": "test: optimistic",
    "best_per_fold": "own test: optimistic",
    "last": "nothing",
    "last_20": "nothing, mean of 20",
}


def percent(mean: float, std: float) -> str:
    return f"{100 * mean:.1f} ± {100 * std:.1f}"


def between(interval: list[float] | None) -> str:
    """An interval of accuracies, which lie between 0 and 1; nothing for one fold, which has none."""
    return f"{100 * max(0, interval[0]):.1f} – {100 * min(1, interval[1]):.1f}" if interval else ""


def headline_label(summary: dict) -> str:
    name = summary["headline"]
    return f"{name} (optimistic)" if summary["protocols"][name]["optimistic"] else name


def metrics_line(summary: dict) -> str:
    """The other metrics of the headline, and what an inner selection chose."""
    found = [
        f"{name} {value['mean']:.3f}"
        for name, value in summary["metrics"].items()
        if value["mean"] is not None and name != "accuracy"
    ]
    lines = [f"{headline_label(summary)}, other metrics: {', '.join(found)}"]
    choices = Counter(
        ", ".join(f"{key}={value}" for key, value in chosen.items()) for chosen in summary.get("chosen", [])
    )
    lines += [
        f"chosen in {count} of {summary['folds']} folds: {text}" for text, count in choices.most_common()
    ]
    return "\n".join(lines)


def audit_table(audit: Audit) -> Table:
    """What each method tells apart at each depth, side by side."""
    table = Table(title=f"{audit.dataset}: {audit.graphs} graphs", title_justify="left")
    methods = list(dict.fromkeys(level.method for level in audit.levels))
    table.add_column("depth", justify="right")
    for method in methods:
        for what in ("colours", "graphs told apart", "ceiling, %"):
            table.add_column(f"{method.upper()}\n{what}", justify="right")
    for depth in sorted({level.depth for level in audit.levels}):
        cells = []
        for method in methods:
            level = audit.level(method, depth)
            ceiling = "" if level.ceiling is None else f"{100 * level.ceiling:.1f}"
            cells += [f"{level.colors:,}", f"{level.graphs:,}", ceiling]
        table.add_row(str(depth), *cells)
    return table


def duplicates_line(audit: Audit) -> str:
    """Duplicates in words; the ceiling is the best accuracy any model of that power can reach."""
    copies = sum(len(group) - 1 for group in audit.duplicates)
    text = (
        f"{copies} exact duplicates (labels of nodes and edges respected) in {len(audit.duplicates)} groups; "
    )
    text += f"{len(audit.opposite)} groups carry different classes"
    if audit.leaks is not None:
        text += f"; {audit.leaking_graphs} graphs have a duplicate in another fold"
    return text
