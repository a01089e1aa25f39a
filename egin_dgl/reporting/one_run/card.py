"""card.md: the data, the model, the results of a run and how to use it, on one page."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from egin_dgl import reproducibility
from egin_dgl.files import write_text
from egin_dgl.reporting.formatting import metrics_text, unit_of
from egin_dgl.reporting.one_run.terminal import choice_name, protocol_rows, target_text
from egin_dgl.runs.run_dir import RunDir, is_described
from egin_dgl.runs.schemas import Summary, read_object
from egin_dgl.runs.settings import trains_in_epochs
from egin_dgl.tasks import TASKS, Task

MAX_LISTED = 50  # skipped molecules; summary.json has all
CARD = """# {model} on {dataset}

## Run

{facts}
{skipped}
## Results

{results}

## Use

```
{predict} run={run} input=FILE
{explain} run={run} input=FILE graph=ID
```

{certainty}
"""


def write_card(run: RunDir) -> None:
    """Write card.md from run.json and summary.json of a finished run."""
    record, summary = run.read_record(), read_object(run.summary, Summary)
    settings, command = record["settings"], train_command(record)
    options = [f"{key} {value}" for key, value in settings["model"].items() if not key.startswith("_")]
    versions = [f"{name} {version}" for name, version in record.get("versions", {}).items()]
    arithmetic, machine = record.get("arithmetic"), "unknown"
    if is_described(arithmetic):
        machine = reproducibility.format_arithmetic(arithmetic)
    facts = [
        f"data: {source_line(record)}",
        *(f"data as read: {note}" for note in summary.get("notes", ())),
        f"model: {record['model']}, {summary['parameters']:,} parameters ({', '.join(options)})",
        f"training: {training_line(settings)}",
        *([f"command: `{command}`"] if command else []),
        f"versions: {', '.join(versions)}",
        f"machine: {machine}, device {summary['device']}, {summary['seconds']:.0f} s",
    ]
    text = CARD.format(
        model=record["model"],
        dataset=record["dataset"],
        facts="\n".join(f"- {fact}" for fact in facts),
        skipped=skipped_text(summary.get("skipped", ())),
        results=refit_text(summary["refit"]) if "refit" in summary else "\n".join(score_lines(summary)),
        predict=sibling_program(command, "predict"),
        explain=sibling_program(command, "explain"),
        run=quote(str(run.path)),
        certainty="\n\n".join(certainty_texts(summary)),
    )
    write_text(run.card, text)


def skipped_text(skipped: Sequence[str]) -> str:
    """A section on what could not be read, empty if nothing was skipped."""
    if not skipped:
        return ""
    lines = [f"- {reason}" for reason in skipped[:MAX_LISTED]]
    lines += [f"- and {len(skipped) - MAX_LISTED:,} more"] if len(skipped) > MAX_LISTED else []
    return "\n".join(["", "## Skipped", "", *lines, ""])


def train_command(record: dict) -> str | None:
    """The command as typed; for a job of a sweep, or one started by `resume=`, the program with the job's overrides."""
    command = record.get("command")
    if not isinstance(command, list) or not command:  # started from Python
        return None
    program, *arguments = map(str, command)
    if any(text in ("-m", "--multirun") or text.startswith("resume=") for text in arguments):
        arguments = record.get("overrides", arguments)
    return " ".join([program, *map(quote, arguments)])


def sibling_program(command: str | None, name: str) -> str:
    """`egin NAME` or `python scripts/NAME.py`, like the command that trained."""
    if command is None or command.startswith("egin "):
        return f"egin {name}"
    script = Path(shlex.split(command)[1])
    return f"python {quote(str(script.with_name(f'{name}.py')))}"


def quote(text: str) -> str:
    """A shell argument; a name that is not UTF-8 in the form $'…'."""
    name = os.fsencode(text)
    if name.decode(errors="replace") == text:
        return shlex.quote(text)
    return "$'{}'".format(repr(name)[2:-1].replace("'", r"\'"))


def source_line(record: dict) -> str:
    dataset, digest = record["settings"]["dataset"], record.get("data_sha256") or "unknown"
    keys = [key for key in ("path", "name", "root", "graphs") if dataset.get(key) is not None]
    source = "; ".join(f"{key} {dataset[key]}" for key in keys)
    return f"{record['dataset']} ({source}), sha256 of data and reading options `{digest}`"


def training_line(settings: dict) -> str:
    """Splits, epochs, batch size and seed."""
    cv, trainer = settings["cv"], settings["trainer"]
    if cv.get("refit"):
        text = "one model on all graphs"
    else:
        text = f"{split_text(settings)}, {'with' if cv['validation'] else 'without'} a validation set"
        text += f", repeated {cv['repeats']} times" if cv.get("repeats", 1) > 1 else ""
        text += f", fold {cv['fold']} only" if cv.get("fold") is not None else ""
        text += ", settings selected per fold" if cv.get("grid") else ""
    if trains_in_epochs(settings):
        epochs = f"{'' if cv.get('refit') else 'up to '}{trainer['epochs']} epochs"
        text += f"; {epochs}, batch size {trainer['batch_size']}"
    return f"{text}; seed {settings['seed']}"


def split_text(settings: dict) -> str:
    """How graphs were split: a test on unseen scaffolds is harder than one on random molecules."""
    cv = settings["cv"]
    if column := settings["dataset"].get("split_column"):
        return f"split by the column {column!r}"
    if cv.get("folds_file"):
        return f"folds of {cv['folds_file']}"
    if cv.get("split_by") == "scaffold_size":
        return "one split: scaffolds by decreasing size fill the training, validation and test set"
    kept = {"scaffolds": cv.get("split_by"), "duplicates": cv.get("group_duplicates")}
    together = " and ".join(name for name, keep in kept.items() if keep)
    return f"{cv['k']} folds" + (f" that keep {together} together" if together else "")


def score_lines(summary: dict) -> list[str]:
    """All protocols, the headline first, and the other metrics by it."""
    head, rows, main = summary["headline"], protocol_rows(summary), summary["metric"]
    unit = unit_of(main)
    lines = [
        f"| protocol | test {main}{unit.remark} | 95 % CI | {choice_name(summary)} chosen on |",
        "|---|---:|---:|---|",
    ]
    for name in dict.fromkeys([head, *rows]):
        value, interval, _, chosen_on = rows[name]
        lines.append(f"| {name} | {value} | {interval} | {chosen_on} |")
    if summary["baseline"] is not None:
        lines.append(f"| {TASKS[summary['task']].baseline} | {unit.text(summary['baseline'])} | | |")
    lines.append("")
    means = {name: value["mean"] for name, value in summary["metrics"].items()}
    return [*lines, f"{head}: {metrics_text(means)}.", *target_lines(summary)]


def target_lines(summary: dict) -> list[str]:
    """A table of all metrics of each target, if there are several."""
    if not (targets := summary.get("targets")):
        return []
    metrics = list(next(iter(targets.values())))
    units = {name: unit_of(name) for name in metrics}
    headers = [f"{name}{unit.remark}" for name, unit in units.items()]
    lines = ["", f"| target | {' | '.join(headers)} |", "|---|" + "---:|" * len(metrics)]
    for target, entries in targets.items():
        texts = [target_text(entries[name], units[name], summary["folds"]) for name in metrics]
        lines.append(f"| {target.replace('|', chr(92) + '|')} | {' | '.join(texts)} |")
    return lines


def refit_text(refit: dict) -> str:
    choice = "with the settings of"  # a forest
    if refit["epochs"] is not None:
        choice = f"for {refit['epochs']} epochs, as chosen by"
    elif refit["C"] is not None:
        choice = f"with C = {refit['C']:g}, as chosen by"
    return (
        f"Trained on all {refit['graphs']:,} graphs {choice} the cross-validation in `{refit['of']}`. There is no "
        "test set: expect the scores of that run."
    )


def certainty_texts(summary: dict) -> list[str]:
    """What is known of probabilities, and of intervals or label sets."""
    task = TASKS[summary.get("task", "multiclass")]
    conformal = [conformal_text(summary["conformal"], task)] if summary.get("conformal") else []
    return [calibration_text(summary), *conformal]


def conformal_text(record: dict, task: type[Task]) -> str:
    """The coverage that was measured on held-out graphs, of each target or from the lowest to the highest."""
    name, measured = task.conformal_name, [value for value in record["coverage"] if value is not None]
    level = f"{100 * record['level']:g} %"
    if not measured:
        return f"{name.capitalize()} at the level {level}: their coverage was not measured."
    found = [f"{100 * value:.1f} %" for value in (min(measured), max(measured))]
    mean = f"{100 * sum(measured) / len(measured):.1f} %"
    text = (
        mean if len(measured) == 1 else f"{found[0]} to {found[1]} (mean {mean} over {len(measured)} targets)"
    )
    return (
        f"{name.capitalize()} at the level {level}, with quantiles of the other test graphs, held the truth for {text} of the "
        "test graphs."
    )


def calibration_text(summary: dict) -> str:
    """How far probabilities can be trusted; the values of a regression have the unit of their targets."""
    if not TASKS[summary["task"]].has_probabilities:
        return "Predicted values have the unit of their targets."
    if "refit" in summary:
        temperature = summary["refit"]["temperature"]
        if temperature is None:
            return "Probabilities are not calibrated."
        return f"Probabilities are scaled by the temperature {temperature:.3g} of that run's validation sets."
    if (calibration := summary.get("calibration")) is None:
        reason = "" if summary["headline"] == "selected" else ": there is no validation set"
        return f"Probabilities are not calibrated{reason}."
    texts = []
    for name, key in (("expected calibration error", "ece"), ("log loss", "log_loss")):
        if key not in calibration:  # of several labels there is no ece
            continue
        numbers = [f"{value:.3f} {when}" for when, value in calibration[key].items() if value is not None]
        texts.append(f"{name} {', '.join(numbers) or 'undefined'}")
    return (
        f"Probabilities are scaled by the temperature {calibration['temperature']:.3g}, fitted on the validation sets of all "
        f"folds. With temperatures fitted without the graphs in question: {'; '.join(texts)}, on the test sets of all folds."
    )
