"""What edges are worth to EGIN-E on the datasets of the paper: the study of `egin edges`, from the cells there are."""

from docgen.results_page import MISSING, Results, percent, signed, table
from egin_dgl.evaluation.statistics import paired_test, practical_verdict
from egin_dgl.reporting.edges.study import REGION, VARIANTS, VERDICTS, Variant

MODEL = "egin_e"


def edge_worth(results: Results) -> str:
    """A row per dataset: the score, and what the model loses by each perturbation, on the same folds."""
    rows = [
        [
            results.label(dataset),
            percent(results.scores(dataset, MODEL, "selected")),
            *(worth(results, dataset, variant) for variant in VARIANTS[1:]),
        ]
        for dataset in results.datasets
    ]
    found = sum(row[1] != MISSING and MISSING not in row[2:] for row in rows)
    title = f"{found} of {len(rows)} datasets. Test accuracy in %, and points lost with their 95 % intervals:"
    return f"{title}\n\n{table(['', 'EGIN-E', *(variant.loses for variant in VARIANTS[1:])], rows)}"


def worth(results: Results, dataset: str, variant: Variant) -> str:
    if variant.name in results.facts[dataset]["unchanged"]:
        return "not applicable"
    options = [option for option in variant.overrides if not option.endswith("=keep")]
    one, two = (results.get(dataset, MODEL, "ten_fold", *others) for others in ([], options))
    first, second = one and one.accuracy["selected"], two and two.accuracy["selected"]
    if not (one and two and first and second) or one.folds != two.folds:
        return MISSING
    test = paired_test(first, second, one.test_to_train)
    verdict = practical_verdict(test.low, test.high, REGION)
    width = 100 * (test.high - test.low) / 2
    return f"{signed(100 * test.difference)} ± {width:.1f} {VERDICTS.get(verdict, verdict)}"
