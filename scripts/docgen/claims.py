"""What holds of the paper's results, each claim with its number and interval, over the datasets there are."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from docgen.results import NAMES
from docgen.results_page import FAMILY, MISSING, Results, mean_interval, percent, points, signed, table
from egin_dgl.evaluation.statistics import holm, interval, paired_test, practical_verdict, rank_test

MARGIN = 0.01  # accuracies closer than one point are practically equal


def egin_against_gin(results: Results, model: str = "egin", other: str = "gin") -> str:
    """Paired tests per dataset, honest selection on the same folds."""
    rows, tests = [], []
    for dataset in results.datasets:
        one, two = (results.get(dataset, name, "ten_fold") for name in (model, other))
        first, second = one and one.accuracy["selected"], two and two.accuracy["selected"]
        if not (one and two and first and second) or one.folds != two.folds or one.data != two.data:
            continue
        test = paired_test(first, second, one.test_to_train)
        papers = [results.published(dataset, name) for name in (model, other)]
        published = signed(papers[0].mean - papers[1].mean) if papers[0] and papers[1] else MISSING
        row = [results.label(dataset), percent(first), percent(second), published]
        row += [points(test.difference, test.low, test.high), f"{test.p:.2g}"]
        rows.append(row)
        tests.append(test)
    names = f"{NAMES[model]} − {NAMES[other]}"
    if not tests:
        return f"{names}: no dataset has both yet."
    verdicts = [practical_verdict(test.low, test.high, MARGIN) for test in tests]
    for row, p, verdict in zip(rows, holm([test.p for test in tests]), verdicts, strict=True):
        row += [f"{p:.2g}", verdict]
    header = [
        "",
        NAMES[model],
        NAMES[other],
        "paper's difference",
        "our difference",
        "p",
        "p, Holm",
        "by a point",
    ]
    counts = ", ".join(f"{name} on {verdicts.count(name)}" for name in dict.fromkeys(verdicts))
    differences = [test.difference for test in tests]
    bounds = interval(differences, 0)
    overall = f", {practical_verdict(*bounds, MARGIN)}" if bounds else ""
    sentence = (
        f"{names} over {len(tests)} of {len(results.datasets)} datasets: mean difference {mean_interval(differences)} "
        f"points{overall}; dataset by dataset: {counts}."
    )
    return f"{sentence}\n\n{table(header, rows)}"


def ranks(results: Results) -> str:
    """Mean ranks of the paper's models in the paper and here, and whether the order is the same."""
    models = ["gin", *(model for model in results.paper_models if model != "gin")]
    shared = [
        d for d in results.complete(models, "selected") if d in results.complete(models, "common_epoch")
    ]
    if len(shared) < 2:
        return f"The order of the models needs two datasets with all ten models under both protocols; there are {len(shared)}."
    published = [[results.published(d, model).mean for model in models] for d in shared]  # type: ignore[union-attr]
    tests = {"paper": rank_test(published)}
    for protocol in ("common_epoch", "selected"):
        tests[protocol] = rank_test(
            [[means(results, d, model, protocol) for model in models] for d in shared]
        )
    order = np.argsort(tests["paper"].ranks, kind="stable")
    adjusted = [MISSING, *(f"{p:.2g}" for p in tests["selected"].p_holm)]
    rows = [
        [NAMES[models[i]], *(f"{test.ranks[i]:.1f}" for test in tests.values()), adjusted[i]] for i in order
    ]
    lines = [f"Mean ranks over {len(shared)} of {len(results.datasets)} datasets, 1 is best:\n"]
    lines.append(table(["", "paper", "common_epoch", "selected", "selected: p against GIN, Holm"], rows))
    for protocol in ("common_epoch", "selected"):
        tau = stats.kendalltau(tests["paper"].ranks, tests[protocol].ranks)
        lines.append(
            f"\n{protocol}: Friedman test p = {tests[protocol].p:.2g}; rank correlation with the paper's order "
            f"Kendall's τ = {tau.statistic:.2f} (p = {tau.pvalue:.2g})."
        )
    return "\n".join(lines)


def means(results: Results, dataset: str, model: str, protocol: str) -> float:
    return round(float(np.mean(results.scores(dataset, model, protocol))), 6)  # type: ignore[arg-type]


def protocol_worth(results: Results) -> str:
    """What a protocol adds to honest selection: on the same runs, and with the paper's larger training sets."""
    compared = {
        "last − selected": ("last", "ten_fold"),
        "common_epoch − selected": ("common_epoch", "ten_fold"),
        "best_per_fold − selected": ("best_per_fold", "ten_fold"),
        "common_epoch of cv=paper − selected": ("common_epoch", "paper"),
    }
    gains = {
        dataset: [protocol_gain(results, dataset, protocol, cv) for protocol, cv in compared.values()]
        for dataset in results.datasets
    }
    found = [[gain for gain in column if gain is not None] for column in zip(*gains.values(), strict=True)]
    rows = [["mean (95 % interval)", *map(mean_interval, found)]]
    for dataset, row in gains.items():
        rows.append(
            [results.label(dataset), *(MISSING if gain is None else signed(100 * gain) for gain in row)]
        )
    counted = max(map(len, found))
    title = f"Points over {counted} of {len(results.datasets)} datasets, each the mean of the finished models that train in epochs:"
    return f"{title}\n\n{table(['', *compared], rows)}"


def protocol_gain(results: Results, dataset: str, protocol: str, cv: str) -> float | None:
    """Mean over models of what a protocol adds to `selected`."""
    pairs = [
        (results.scores(dataset, model, protocol, cv), results.scores(dataset, model, "selected"))
        for model in results.models
        if model != "majority" and results.scores(dataset, model, "last")
    ]
    gains = [float(np.mean(one) - np.mean(two)) for one, two in pairs if one and two]
    return float(np.mean(gains)) if gains else None


def claims(results: Results) -> str:
    others = [egin_against_gin(results, model).partition("\n")[0] for model in (*FAMILY[1:], "egin_m")]
    sections: Sequence[tuple[str, str]] = (
        ("EGIN against GIN", egin_against_gin(results) + "\n\n" + "\n".join(f"- {line}" for line in others)),
        ("What the choice of a protocol is worth", protocol_worth(results)),
        ("The order of the paper's models", ranks(results)),
    )
    return "\n".join(f"### {title}\n\n{text}\n" for title, text in sections)
