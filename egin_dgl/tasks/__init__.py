"""Tasks: what a graph's targets are, and how they are learnt, scored and predicted."""

from egin_dgl.tasks.multiclass import Multiclass
from egin_dgl.tasks.multilabel import Multilabel
from egin_dgl.tasks.regression import Regression
from egin_dgl.tasks.task import Task

TASKS: dict[str, type[Task]] = {task.name: task for task in (Multiclass, Multilabel, Regression)}


__all__ = ["TASKS", "Multiclass", "Multilabel", "Regression", "Task"]
