"""The results of one run on the terminal."""

from collections import Counter

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from egin_dgl.reporting.formatting import (
    EPOCH_CHOICE,
    PERCENT,
    Unit,
    format_range,
    metrics_text,
    protocol_label,
    unit_of,
)
from egin_dgl.tasks import TASKS

MAX_TARGETS = 12  # shown; card.md has all


def summary_table(summary: dict, width: int = 80) -> Table:
    """A row per protocol, and the best constant prediction for comparison; kernel machines have C in place of epochs, forests
    a single row.

    The table has no borders and fits 60 columns; below 80 columns it has less padding.
    """
    single, wide = summary["folds"] == 1, width >= 80  # one fold has no standard deviation and interval
    metric, unit = summary["metric"], unit_of(summary["metric"])
    direction, percent = ("", ", %") if unit is PERCENT else (unit.remark, "")
    title = f"{summary['model']} on {summary['dataset']}: test {metric}{direction} {over_folds(summary)}"
    padding = (0, 1) if wide else (0, 0)
    table = Table(title=title, title_justify="left", box=SIMPLE, show_edge=wide, padding=padding)
    choice, chooses = choice_name(summary), not is_fitted_once(summary)
    table.add_column("protocol", no_wrap=True)
    headers = [f"{metric}{percent}"] if single else [f"mean ± std{percent}", "95 % CI"]
    for header in (*headers, *([choice] if chooses else [])):
        table.add_column(header, justify="right", no_wrap=True)
    if chooses:
        table.add_column(f"{choice} chosen on")
    for name, (value, interval, *choices) in protocol_rows(summary).items():
        optimistic = "dim" if summary["protocols"][name]["optimistic"] else None
        style = "bold" if name == summary["headline"] else optimistic
        cells = [value, *([] if single else [interval]), *(choices if chooses else [])]
        table.add_row(name, *cells, style=style)
    table.add_section()
    if summary["baseline"] is not None:
        table.add_row(TASKS[summary["task"]].baseline, unit.text(summary["baseline"]))
    return table


def targets_table(summary: dict) -> Table:
    """The metric of each target, in the order of the data; card.md has all targets and metrics."""
    metric, targets = summary["metric"], summary["targets"]
    unit = unit_of(metric)
    table = Table(box=SIMPLE, show_edge=False, padding=(0, 1))
    table.add_column("target")
    table.add_column(f"{metric}{unit.remark}", justify="right", no_wrap=True)
    for name in list(targets)[:MAX_TARGETS]:
        table.add_row(escape(name), target_text(targets[name].get(metric), unit, summary["folds"]))
    if len(targets) > MAX_TARGETS:
        table.add_row(f"and {len(targets) - MAX_TARGETS} more in card.md", "")
    return table


def target_text(entry: dict | None, unit: Unit, folds: int) -> str:
    """Mean ± std over folds; a dash if the metric is undefined in all of them."""
    if entry is None or entry["mean"] is None:
        return "–"
    return unit.mean_std(entry["mean"], entry["std"]) if folds > 1 else unit.text(entry["mean"])


def protocol_rows(summary: dict) -> dict[str, tuple[str, str, str, str]]:
    """Value, interval, epoch or C, and how it was chosen, of each protocol that has a result."""
    rows, unit, fitted_once = {}, unit_of(summary["metric"]), is_fitted_once(summary)
    for name, result in summary["protocols"].items():
        if result is None or (fitted_once and name != summary["headline"]):
            continue
        value, interval = unit.text(result["mean"]), ""
        if result["interval"]:
            low, high = result["interval"]
            low, high = min(unit.clip(low), result["mean"]), max(unit.clip(high), result["mean"])
            value = unit.mean_std(result["mean"], result["std"])
            interval = f"{unit.text(low)} – {unit.text(high)}"
        chosen = as_list(result.get(choice_name(summary), []))
        averaged = format_range(as_list(result.get("averaged", [])))
        text = "each" if len(chosen) > 1 else format_range(chosen)
        how = "fitted once" if fitted_once else EPOCH_CHOICE[name][1].format(averaged=averaged)
        rows[name] = value, interval, text, how
    return rows


def choice_name(summary: dict) -> str:
    """What protocols choose: the epoch of a network or the penalty C of a kernel machine."""
    return "C" if "C" in summary["protocols"][summary["headline"]] else "epoch"


def is_fitted_once(summary: dict) -> bool:
    """Whether there were no epochs, or values of C, to choose from, as for a forest: all protocols are then the same."""
    protocols = summary["protocols"]
    return (
        protocols["last"] is None
        and protocols["common_epoch"] is not None
        and choice_name(summary) == "epoch"
    )


def over_folds(summary: dict) -> str:
    """The folds of which the scores are means."""
    folds, k = summary["folds"], summary["k"]
    if summary.get("holdout"):
        return "on one split"
    return f"over {folds} fold{'s' * (folds > 1)}" + (f" of {k}" if folds < k else "")


def as_list(value: float | list[float]) -> list[float]:
    """summary.json has one number where all folds agree."""
    return value if isinstance(value, list) else [value]


def headline_label(summary: dict) -> str:
    optimistic = summary["protocols"][summary["headline"]]["optimistic"] and not is_fitted_once(summary)
    return protocol_label(summary["headline"], optimistic)


def metrics_line(summary: dict) -> str:
    """The other metrics by the headline protocol, and the settings, or C, chosen per fold."""
    means = {name: value["mean"] for name, value in summary["metrics"].items() if name != summary["metric"]}
    penalties = as_list(summary["protocols"][summary["headline"]].get("C", []))
    by_fold = summary.get("chosen", []) + [{"C": f"{C:g}"} for C in penalties if len(penalties) > 1]
    choices = Counter(", ".join(f"{key}={value}" for key, value in chosen.items()) for chosen in by_fold)
    lines = [f"chosen in {n} of {summary['folds']} folds: {text}" for text, n in choices.most_common()]
    return "\n".join([f"{headline_label(summary)}, other metrics: {metrics_text(means)}", *lines])
