"""Tables of results as Markdown, LaTeX and CSV; all three from the same entries, so that they say the same."""

import csv
import io
from collections.abc import Callable, Sequence

from egin_dgl.evaluation.protocols import PROTOCOLS
from egin_dgl.reporting.many_runs.comparison import ModelComparison
from egin_dgl.reporting.many_runs.layout import brief, value
from egin_dgl.reporting.many_runs.ranks import Ranks
from egin_dgl.reporting.many_runs.table import ResultTable
from egin_dgl.reporting.units import unit_of
from egin_dgl.reporting.wording import span

TEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "×": r"$\times$",
    "ε": r"$\epsilon$",
    "<": "$<$",
    ">": "$>$",
}


def grid(table: ResultTable, escape: Callable[[str], str], bold: Callable[[str], str]) -> list[list[str]]:
    """The header and the rows, as text in the given notation."""
    layout = table.layout
    lines = [[escape(word) for word in (*layout.row_headers, *layout.column_headers)]]
    for row in layout.rows:
        line = [escape(brief(word)) for word in row]
        for column in layout.columns:
            entry = table.entries.get((row, column))
            text = escape(entry.text) if entry else ""
            line.append(bold(text) if entry and entry.best else text)
        lines.append(line)
    return lines


def markdown(table: ResultTable) -> str:
    lines = grid(table, lambda text: text.replace("|", "\\|"), lambda text: f"**{text}**")
    names = len(table.layout.row_keys)
    notes = "\n".join(f"- {note}" for note in table.notes)
    return f"### {table.title}\n\n{markdown_grid(lines, names)}\n{notes}\n"


def markdown_grid(lines: Sequence[Sequence[str]], names: int) -> str:
    """The first line is the header, the first `names` columns hold names; numbers stand to the right."""
    rule = ["---"] * names + ["---:"] * (len(lines[0]) - names)
    return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], rule, *lines[1:]))


def markdown_ranks(ranks: Ranks) -> str:
    return f"### {ranks.title}\n\n{markdown_grid(rank_lines(ranks), 1)}\n{ranks.note}\n"


def rank_lines(ranks: Ranks) -> list[list[str]]:
    lines = [[ranks.rows[i], f"{ranks.mean_ranks[i]:.2f}", str(ranks.won[i])] for i in ranks.order]
    return [["", "mean rank", "datasets won"], *lines]


def markdown_comparison(comparisons: Sequence[ModelComparison]) -> str:
    sentences = "\n".join(f"- {one.sentence}" for one in comparisons)
    return f"### {comparison_title(comparisons)}\n\n{markdown_grid(comparison_lines(comparisons), 1)}\n{sentences}\n"


def comparison_title(comparisons: Sequence[ModelComparison]) -> str:
    one = comparisons[0]
    return (
        f"{one.first} against {one.second}: corrected resampled t-test on the same folds, "
        f"test {one.metric}{unit_of(one.metric).remark}, protocol {one.protocol}"
    )


def comparison_lines(comparisons: Sequence[ModelComparison]) -> list[list[str]]:
    several = len(comparisons) > 1
    header = ["dataset", comparisons[0].first, comparisons[0].second, "difference", "95 % interval", "t", "p"]
    lines = [[*header, *(["p, Holm"] if several else []), "folds"]]
    for one in comparisons:
        test, unit = one.test, unit_of(one.metric)
        line = [one.dataset, *(unit.text(mean) for mean in one.means), unit.signed(test.difference)]
        line += [f"{unit.signed(test.low)} to {unit.signed(test.high)}", f"{test.t:.2f}".replace("-", "−")]
        line += [f"{test.p:.3g}", *([f"{one.p_holm:.3g}"] if several else [])]
        line.append(str(test.folds) if test.folds == one.expected else f"{test.folds}/{one.expected}")
        lines.append(line)
    return lines


def latex(table: ResultTable) -> str:
    """For `\\usepackage{booktabs}`."""
    lines = grid(table, tex, lambda text: rf"\textbf{{{text}}}")
    names = len(table.layout.row_keys)
    header, *rows = (" & ".join(line) + r" \\" for line in lines)
    body = [rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(lines[0]) - names)}}}", r"\toprule", header]
    body += [r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    notes = [r"\par\smallskip\footnotesize", " ".join(tex(note) for note in table.notes)]
    start = [r"\begin{table}", r"\centering\small", rf"\caption{{{tex(table.title)}}}"]
    return "\n".join([*start, *body, *notes, r"\end{table}"]) + "\n"


def tex(text: str) -> str:
    return "".join(TEX.get(sign, sign) for sign in text)


def long_csv(table: ResultTable) -> str:
    """A line for each cell and protocol; a cell without any fold has one line without values.

    Scores in % with four decimals, losses with six; `averaged` is the number of epochs that a value is the mean of.
    """
    layout, unit = table.layout, table.unit
    names = [
        "model",
        "dataset",
        *layout.keys,
        "protocol",
        "optimistic",
        "metric",
        "mean",
        "std",
        "low",
        "high",
    ]
    names += ["averaged", "folds", "expected_folds", "complete", "seeds", "paper", "difference", "folder"]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    tables = [ResultTable(layout, protocol, table.metric, table.paper) for protocol in PROTOCOLS]
    for place in layout.filled:
        cell = layout.places[place]
        record = {"model": cell.model, "dataset": cell.dataset, "metric": table.metric}
        record |= {key: value(cell, key) for key in layout.keys}
        record |= {"folds": len(cell.results), "expected_folds": cell.expected}
        record |= {"complete": str(cell.complete).lower(), "seeds": " ".join(map(str, cell.seeds))}
        record["folder"] = ";".join(str(run.folder) for run in cell.runs)
        entries = [(one.protocol, one.entries[place]) for one in tables]
        scored = [(protocol, entry) for protocol, entry in entries if entry.score]
        for protocol, entry in scored:
            low, high = cell.interval(entry.score) or (None, None)
            numbers = {"mean": entry.score.mean, "std": entry.score.std, "low": low, "high": high}
            numbers["difference"] = entry.difference
            numbers = {name: "" if n is None else unit.exact(n) for name, n in numbers.items()}
            beside = {"paper": entry.published.mean if entry.published else ""}
            marks = {"protocol": protocol, "optimistic": str(entry.score.optimistic).lower()}
            marks["averaged"] = span(entry.score.averaged or ())
            writer.writerow(record | marks | numbers | beside)
        if not scored:
            writer.writerow(record)
    return text.getvalue()
