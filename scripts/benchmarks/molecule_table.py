"""The tables of the molecule benchmark: test scores and CPU times of the fits that have finished."""

from collections.abc import Callable

import pandas as pd


def format_tables(results: pd.DataFrame, planned: pd.DataFrame) -> str:
    """Mean ± standard error of the test score over seeds, and mean CPU seconds, each a row per data and split.

    A fit that is planned but not made is missing: a cell has fewer seeds than planned, or none. The best mean of a row is bold
    where all of its fits are made. CPU times of a row compare if it names one processor.

    Args:
        results: a row per finished fit.
        planned: a row per fit of the benchmark, in the order of the tables.
    """
    scores, times = pivot(results, planned, score_cell), pivot(results, planned, time_cell, processors=True)
    return f"Test score:\n\n{scores}\n\nCPU time of a fit in seconds:\n\n{times}"


def pivot(
    results: pd.DataFrame,
    planned: pd.DataFrame,
    cell: Callable[[pd.DataFrame, int], str],
    processors: bool = False,
) -> str:
    models = list(dict.fromkeys(planned["model"]))
    lines = [f"| data | split | {' | '.join(models)} |", "|---|---|" + "---:|" * len(models)]
    if processors:
        lines = [lines[0] + " processor |", lines[1] + "---|"]
    for (data, split), row in planned.groupby(["data", "split"], sort=False):
        metric, fits = row["metric"].iloc[0], results.query("data == @data and split == @split")
        cells = {
            name: cell(fits[fits["model"] == name], int((row["model"] == name).sum())) for name in models
        }
        best = best_model(fits, metric) if cell is score_cell and len(fits) == len(row) else None
        texts = (f"**{text}**" if name == best else text for name, text in cells.items())
        lines.append(f"| {data}, {metric} | {split} | {' | '.join(texts)} |")
        if processors:
            lines[-1] += f" {', '.join(sorted(fits['processor'].dropna().unique()))} |"
    return "\n".join(lines)


def best_model(fits: pd.DataFrame, metric: str) -> str:
    means = fits.groupby("model")["test"].mean()
    return str(means.idxmin() if metric == "rmse" else means.idxmax())


def score_cell(fits: pd.DataFrame, planned: int) -> str:
    if not planned:
        return ""
    if not len(fits):
        return "missing"
    error = f" ± {fits['test'].std(ddof=1) / len(fits) ** 0.5:.3f}" if len(fits) > 1 else ""
    count = f" ({len(fits)} of {planned} seeds)" if len(fits) < planned else ""
    return f"{fits['test'].mean():.3f}{error}{count}"


def time_cell(fits: pd.DataFrame, planned: int) -> str:
    return f"{fits['cpu_seconds'].mean():,.0f}" if len(fits) else "missing" if planned else ""


def format_calibration(results: pd.DataFrame, planned: pd.DataFrame) -> str:
    """Mean log loss of the test molecules over seeds, before and after temperature scaling, a row per data, split and model."""
    lines = ["| data | split | model | fits | log loss before | after |", "|---|---|---|---:|---:|---:|"]
    keys = ["data", "split", "model"]
    found = results.dropna(subset=["log_loss"]).groupby(keys)[["log_loss", "calibrated_log_loss"]]
    counts, means = found.size(), found.mean()
    for key in planned[keys].drop_duplicates().itertuples(index=False, name=None):
        if key in counts:
            before, after = means.loc[key]
            lines.append(f"| {' | '.join(key)} | {counts[key]} | {before:.3f} | {after:.3f} |")
    return "\n".join(lines)
