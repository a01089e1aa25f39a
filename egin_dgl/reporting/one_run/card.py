"""card.md of a run: what it is, what it is worth, and how to use it, on one page."""

import json
import shlex
from pathlib import Path

from egin_dgl import arithmetic
from egin_dgl.evaluation.metrics import MAIN
from egin_dgl.files import write_text
from egin_dgl.reporting.one_run.terminal import between, chosen_on, what_is_chosen
from egin_dgl.runs.run_dir import RunDir, is_described


def write_card(run: RunDir) -> None:
    """From the files of a run that has ended."""
    record, summary = (json.loads(path.read_text(encoding="utf-8")) for path in (run.run_json, run.summary))
    write_text(run.card, card(record, summary, record["overrides"], run.path))


def card(record: dict, summary: dict, words: list[str], folder: Path) -> str:
    lines = [f"# {record['model']} on {record['dataset']}", ""]
    lines += ["## What it is", ""]
    lines += [f"- data: {record['dataset']}, {origin_line(record)}"]
    lines += [
        f"- model: {record['model']}, {summary['parameters']:,} parameters ({options_line(record['settings']['model'])})"
    ]
    lines += [f"- training: {training_line(record['settings'])}"]
    lines += [f"- command: `{shlex.join(['python', 'scripts/train.py', *words])}`"]
    versions = ", ".join(f"{name} {version}" for name, version in versions_of(record).items())
    lines += [
        f"- made with {versions}",
        f"- on {machine(record)}, device {summary['device']}, {summary['seconds']:.0f} s",
        "",
    ]
    lines += ["## What it is worth", ""]
    lines += refit_lines(summary["refit"]) if "refit" in summary else score_lines(summary)
    lines += ["", "## How to use it", "", "```", f"egin predict run={shlex.quote(str(folder))} input=FILE"]
    lines += [f"egin explain run={shlex.quote(str(folder))} input=FILE graph=ID", "```", ""]
    lines += ["Probabilities " + calibration_line(summary), ""]
    return "\n".join(lines)


def versions_of(record: dict) -> dict:
    known = record.get("versions")
    return known if isinstance(known, dict) else {}


def machine(record: dict) -> str:
    """The processor; earlier versions did not note it."""
    known = record.get("arithmetic")
    return arithmetic.in_words(known) if known is not None and is_described(known) else "an unknown processor"


def origin_line(record: dict) -> str:
    digest = record.get("data_sha256") or "no hash"
    source = {
        key: value
        for key, value in record["settings"]["dataset"].items()
        if value is not None and key in ("path", "name", "root", "graphs")
    }
    told = ", ".join(f"{key} {value}" for key, value in source.items())
    return f"{told + '; ' if told else ''}sha256 of data and reading `{digest}`"


def training_line(settings: dict) -> str:
    """The protocol in a few words."""
    cv, trainer = settings["cv"], settings["trainer"]
    if cv.get("refit"):
        how = "one model on all graphs"
    else:
        held = "one part validates and one tests" if cv["validation"] else "one part tests, none validates"
        how = f"{parts_line(settings)}, {held}" + (
            f", {cv['repeats']} times" if cv.get("repeats", 1) > 1 else ""
        )
        how += f", fold {cv['fold']} alone" if cv.get("fold") is not None else ""
        how += ", settings chosen fold by fold" if cv.get("grid") else ""
    if "penalties" in settings["model"]:  # a kernel machine, which has no epochs
        return f"{how}; seed {settings['seed']}"
    long = f"{'' if cv.get('refit') else 'up to '}{trainer['epochs']} epochs"
    return f"{how}; {long} in batches of {trainer['batch_size']}, seed {settings['seed']}"


def parts_line(settings: dict) -> str:
    """How graphs were cut: a test on rings never seen is worth more than one on any molecules."""
    cv = settings["cv"]
    if column := settings["dataset"].get("part"):
        return f"parts by the column {column!r}"
    if cv.get("folds_file"):
        return f"parts of {cv['folds_file']}"
    together = ["a scaffold"] if cv.get("split_by") else []
    together += ["duplicates"] if cv.get("group_duplicates") else []
    return f"{cv['k']} parts" + (f" that keep {' and '.join(together)} together" if together else "")


def options_line(options: dict) -> str:
    return ", ".join(f"{key} {value}" for key, value in options.items() if not key.startswith("_"))


def score_lines(summary: dict) -> list[str]:
    """Every protocol that was read, the honest one first, and the other metrics at its epochs."""
    head = summary["headline"]
    choice = what_is_chosen(summary)
    lines = [f"| protocol | test {MAIN.name}, % | 95 % | {choice} chosen on |", "|---|---:|---:|---|"]
    order = [head, *(name for name in summary["protocols"] if name != head)]
    for name in order:
        result = summary["protocols"][name]
        if result is None:
            continue
        value = f"{100 * result['mean']:.1f}" + (
            f" ± {100 * result['std']:.1f}" if len(result["per_fold"]) > 1 else ""
        )
        lines.append(f"| {name} | {value} | {between(result['interval'])} | {chosen_on(name, result)} |")
    lines += [f"| majority class | {100 * summary['majority_accuracy']:.1f} | | |", ""]
    means = {name: value["mean"] for name, value in summary["metrics"].items() if value["mean"] is not None}
    lines += [f"{head}: " + ", ".join(f"{name} {mean:.3f}" for name, mean in means.items()) + "."]
    return lines


def refit_lines(refit: dict) -> list[str]:
    long = f"for {refit['epochs']} epochs" if refit["epochs"] is not None else f"with C = {refit['C']:g}"
    return [
        f"Trained on all {refit['graphs']:,} graphs {long}, as the cross-validation in `{refit['of']}` chose. No graph was "
        "left to test on: expect what that run measured, or a little more."
    ]


def calibration_line(summary: dict) -> str:
    if "refit" in summary:
        known = summary["refit"]["temperature"]
        return (
            "are not calibrated."
            if known is None
            else f"are scaled by the temperature {known:.3g} of that run's validation parts."
        )
    known = summary.get("calibration")
    if known is None:
        return "are not calibrated: the run kept no validation scores to learn it from."
    error = known["ece"]
    before = f"{error['before']:.3f} before, " if error["before"] is not None else ""
    after = f"{error['after']:.3f} after" if error["after"] is not None else "not measured"
    loss = known["log_loss"]
    both = f"; log loss {loss['before']:.3f} before, {loss['after']:.3f} after" if before else ""
    return (
        "are scaled by a temperature that each fold learnt on its validation part: expected calibration error "
        f"{before}{after}{both}, over the test graphs of all folds."
    )
