"""Tasks: what a graph's targets are, and how they are learnt, scored and predicted."""

from torch import Tensor

from egin_dgl.tasks.multiclass import Multiclass
from egin_dgl.tasks.multilabel import Multilabel
from egin_dgl.tasks.regression import Regression
from egin_dgl.tasks.task import Task

TASKS: dict[str, type[Task]] = {task.name: task for task in (Multiclass, Multilabel, Regression)}


def task_of(labels: Tensor, metric: str) -> type[Task]:
    """The task of labels, as in `GraphDataset`, and of a metric that was monitored."""
    if not labels.is_floating_point():
        return Multiclass
    return next(task for task in (Multilabel, Regression) if metric in task.metrics)


__all__ = ["TASKS", "Multiclass", "Multilabel", "Regression", "Task", "task_of"]
