"""The table, the sentence and the CSV of what edges are worth."""

from collections.abc import Sequence

import pandas as pd

from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.reporting.dataset_summary import format_bound
from egin_dgl.reporting.edges.study import ORIGINAL, VARIANTS, EdgeStudy, Variant, Worth
from egin_dgl.reporting.formatting import EPOCH_CHOICE, format_range, protocol_label
from egin_dgl.reporting.many_runs.renderers import TextTable
from egin_dgl.reporting.many_runs.run_groups import ABSENT


def study_table(study: EdgeStudy) -> TextTable:
    """A line per variant: score, what the model loses, verdict, bounds and duplicates; what follows is the last note."""
    lines = [["edges", f"test {study.metric}", "worth", "verdict", *audit_headers(study)]]
    for variant in VARIANTS:
        compared = ["", ""] if variant is ORIGINAL else [worth_text(study, variant), study.verdict(variant)]
        lines.append([variant.name, score_text(study, variant), *compared, *audit_cells(study, variant)])
    return TextTable(study_title(study), lines, 1, study_notes(study))


def study_title(study: EdgeStudy) -> str:
    score = study.score(ORIGINAL)
    label = protocol_label(study.protocol, bool(score and score.optimistic))
    spread = "mean ± std over folds" if score and len(score.per_fold) > 1 else "one split"
    return f"{study.subject}: test {study.metric}{study.unit.remark}, {spread}, protocol {label}"


def score_text(study: EdgeStudy, variant: Variant) -> str:
    score, group = study.score(variant), study.groups.get(variant.name)
    if group is None:
        return ABSENT
    if score is None:
        return ABSENT if group.complete else group.state
    several = len(score.per_fold) > 1
    text = study.unit.mean_std(score.mean, score.std) if several else study.unit.text(score.mean)
    return text if group.complete else f"{text} [{group.state}]"


def worth_text(study: EdgeStudy, variant: Variant) -> str:
    """What the model loses, ± half of the interval."""
    worth, score = study.worths.get(variant.name), study.score(ORIGINAL)
    if worth is None or score is None:
        return ABSENT
    text = study.unit.signed(worth.mean, score.mean)
    if worth.half_width is None:
        return text
    return f"{text} ± {study.unit.text(worth.half_width, score.mean)}"


def region_text(study: EdgeStudy) -> str:
    text, unit = f"{study.unit.factor * study.region:.3g}", study.unit.name or f" of {study.metric}"
    return text + (unit.removesuffix("s") if text == "1" else unit)


def audit_headers(study: EdgeStudy) -> list[str]:
    return ["1-WL", "E-WL", "duplicates", "conflicts"] if study.audits else []


def audit_cells(study: EdgeStudy, variant: Variant) -> list[str]:
    audit = study.audits.get(variant.name)
    if audit is None:
        return [ABSENT] * len(audit_headers(study))
    last = {level.method: level for level in audit.levels}
    bounds = [format_bound(last[method].bound, audit.metric) for method in ("1-wl", "e-wl")]
    copies = sum(len(group) - 1 for group in audit.duplicates)
    return [*bounds, str(copies), str(len(audit.opposite))]


def study_notes(study: EdgeStudy) -> list[str]:
    """How to read the table, what was not run, and last what follows."""
    folds = [len(group.results) for group in study.groups.values()]
    has_intervals = any(worth.half_width is not None for worth in study.worths.values())
    how, chosen = EPOCH_CHOICE[study.protocol][0], "C" if study.original.is_kernel else "the epoch"
    unused = [v for v in VARIANTS[1:3] if study.worths.get(v.name) == Worth(0.0, 0.0, 0.0)]
    not_run = [v.name for v in VARIANTS if v.name not in study.groups and v.name not in study.unchanged]
    bound = "best score"
    if study.audits:
        metric = study.audits[ORIGINAL.name].metric
        bound = f"smallest {metric}" if METRICS[metric].is_loss else f"highest {metric} in %"
    depth = max((level.depth for audit in study.audits.values() for level in audit.levels), default=0)
    conditions = {
        "worth: what the model loses by the perturbation, on the same folds and seeds.": True,
        f"±: half of the 95 % interval, corrected for folds that share training graphs ({format_range(folds)} folds); {chosen} "
        f"is chosen {how}.": has_intervals,
        f"matters, harms: the interval lies beyond ±{region_text(study)}; equivalent: within; undecided: neither.": has_intervals,
        f"1-WL, E-WL: {bound}, by colour refinement of depth {depth}; duplicates: copies of another graph; conflicts: groups "
        "of copies with different targets.": study.audits,
        f"{study.original.model} has equal scores with other edge features: it does not use them.": unused,
        f"Not run: {', '.join(not_run)}.": not_run,
    }
    reasons = [f"{v.name} is not applicable: {v.unchanged}." for v in VARIANTS if v.name in study.unchanged]
    return [*(note for note, holds in conditions.items() if holds), *reasons, conclusion(study)]


def conclusion(study: EdgeStudy) -> str:
    """What follows: edge features are worth 4.1 ± 1.3 points of test accuracy; structure 6.0 ± 1.5."""
    remarks = {"equivalent": f" (less than {region_text(study)})", "undecided": " (undecided)"}
    parts: list[str] = []
    for variant in VARIANTS[1:]:
        if variant.name in study.worths:
            text = worth_text(study, variant).removeprefix("+")
            verb, unit = "", ""
            if not parts:
                verb = " is worth" if variant.loses == "structure" else " are worth"
                unit = (
                    f"{study.unit.name} of test {study.metric}"
                    if study.unit.name
                    else f" in test {study.metric}"
                )
            parts.append(f"{variant.loses}{verb} {text}{unit}{remarks.get(study.verdict(variant), '')}")
    if not parts:
        return f"{study.subject}: no variant can be compared with the dataset as it is."
    return f"{study.subject}: {'; '.join(parts)}."


def worth_table(studies: Sequence[EdgeStudy]) -> TextTable:
    """A line per model and dataset: what each variant is worth."""
    lines = [["model", "dataset", "metric", *(variant.loses for variant in VARIANTS[1:])]]
    for study in studies:
        group = study.original
        texts = []
        for variant in VARIANTS[1:]:
            applies = variant.name not in study.unchanged
            texts.append(
                f"{worth_text(study, variant)} {study.verdict(variant)}" if applies else "not applicable"
            )
        lines.append([group.model, group.dataset, study.metric + study.unit.remark, *texts])
    return TextTable("What edges are worth", lines, 2, [])


def studies_csv(studies: Sequence[EdgeStudy]) -> str:
    """A line per model, dataset and variant; fractions in %."""
    lines = [csv_line(study, variant) for study in studies for variant in VARIANTS]
    return pd.DataFrame(lines).to_csv(index=False, lineterminator="\n", float_format="%.6g")


def csv_line(study: EdgeStudy, variant: Variant) -> dict[str, object]:
    group, score, worth = study.groups.get(variant.name), study.score(variant), study.worths.get(variant.name)
    numbers: dict[str, float | None] = {"region": study.region}
    if score:
        numbers |= {"mean": score.mean, "std": score.std}
    if worth:
        numbers |= {"worth": worth.mean, "low": worth.low, "high": worth.high}
    columns = ("mean", "std", "worth", "low", "high", "region")
    values = {name: numbers.get(name) for name in columns}
    return {
        "model": study.original.model,
        "dataset": study.original.dataset,
        "edges": variant.name,
        "metric": study.metric,
        "protocol": study.protocol,
        **{name: None if value is None else study.unit.factor * value for name, value in values.items()},
        "verdict": "" if variant is ORIGINAL else study.verdict(variant),
        "folds": len(group.results) if group else 0,
        **dict(zip(audit_headers(study), audit_cells(study, variant), strict=True)),
    }
