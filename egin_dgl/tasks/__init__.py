"""Tasks: what a graph's targets are, and how they are learnt, scored and predicted."""

from egin_dgl.tasks.multiclass import Multiclass
from egin_dgl.tasks.multilabel import Multilabel
from egin_dgl.tasks.regression import Regression
from egin_dgl.tasks.task import Task

TASKS: dict[str, type[Task]] = {task.name: task for task in (Multiclass, Multilabel, Regression)}


def task_of_metric(main: str) -> type[Task]:
    """The task with this main metric, which histories name."""
    return next(task for task in TASKS.values() if task.main().name == main)


__all__ = ["TASKS", "Multiclass", "Multilabel", "Regression", "Task", "task_of_metric"]
