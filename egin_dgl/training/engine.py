"""Train one fold: epochs in, a history out."""

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import ReduceLROnPlateau

from egin_dgl.data.dataset import GraphDataset
from egin_dgl.data.loader import GraphLoader
from egin_dgl.errors import TrainingError
from egin_dgl.models.model import embeddings_of, logits_of
from egin_dgl.training.checkpoint import load_progress, load_weights, save_progress, save_weights
from egin_dgl.training.history import EpochRecord, History, best_on_validation, write_history
from egin_dgl.training.job import FoldJob, FoldResult, Report
from egin_dgl.training.options import TrainerOptions
from egin_dgl.training.seeding import seed_torch
from egin_dgl.training.selection import balanced_weights, selection_score
from egin_dgl.training.tracking import FoldTracker

GradScaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler  # moved in torch 2.3


@dataclass(frozen=True)
class Evaluation:
    loss: float
    accuracy: float
    logits: Tensor  # on the CPU

    @classmethod
    def of_nothing(cls, graphs: int, classes: int) -> "Evaluation":
        """Of a part that is empty, or was not read."""
        return cls(math.nan, math.nan, torch.full((graphs, classes), math.nan))


def run_fold(dataset: GraphDataset, job: FoldJob, report: Report) -> FoldResult:
    """Train, evaluate after every epoch, keep the best and the last state; go on where an earlier run stopped.

    Every epoch seeds itself, so that a resumed fold ends with the same numbers as an unbroken one.
    """
    options, split = job.options, job.split
    last_path, best_path = job.folder / "last.pt", job.folder / "best.safetensors"
    progress = load_progress(last_path)
    if progress and progress["finished"]:
        return FoldResult.of_finished(job.fold, progress)

    dataset = dataset.measured_on(split.train)  # a model may size itself by its training graphs
    metadata = dict(job.metadata, fold=job.fold, info=asdict(dataset.info), transforms={})
    make_model = job.make_model
    for fit in job.transforms:
        transform = fit(dataset, split.train)
        dataset, make_model = transform.apply(dataset), transform.wrap(make_model)
        metadata["transforms"][type(transform).__name__] = transform.to_dict()
    dataset = dataset.to(job.device)
    train, validation, test = (
        GraphLoader(dataset, part, options.batch_size) for part in (split.train, split.validation, split.test)
    )

    seed_torch(job.seed, job.fold, 0)
    model = make_model(dataset.info).to(job.device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    optimizer = fused_where_possible(job.make_optimizer, model)
    scheduler = job.make_scheduler(optimizer)
    # fp16 gradients underflow without loss scaling; a disabled scaler passes everything straight through.
    scaler = GradScaler(enabled=options.precision == "fp16")
    states = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    history: History = []
    test_logits: list[Tensor] = []
    if progress:
        for name, holder in states.items():
            holder.load_state_dict(progress[name])
        history, test_logits = progress["history"], progress["test_logits"]

    weights = None
    if options.class_weights:
        weights = balanced_weights(dataset.labels[torch.as_tensor(split.train)], dataset.info.classes)
    unread = Evaluation.of_nothing(len(split.test), dataset.info.classes)
    validation_labels = dataset.labels[torch.as_tensor(split.validation)].cpu()

    with closing(FoldTracker(job.folder, first_epoch=len(history) + 1)) as tracker:
        while not ended(history, options):
            epoch = len(history) + 1
            start = time.perf_counter()
            lr = optimizer.param_groups[0]["lr"]
            generator = seed_torch(job.seed, job.fold, epoch)
            batches = train.shuffled(generator)
            trained, grad_norm = train_epoch(model, batches, optimizer, scaler, options, epoch, weights)
            on_validation = evaluate(model, validation, options) if len(validation) else None
            on_test = unread if job.test_once or not len(test) else evaluate(model, test, options)
            validation_loss = on_validation.loss if on_validation else math.nan
            if isinstance(scheduler, ReduceLROnPlateau):
                scheduler.step(trained.loss if on_validation is None else validation_loss)
            else:
                scheduler.step()
            record = EpochRecord(
                epoch=epoch,
                train_loss=trained.loss,
                train_accuracy=trained.accuracy,
                val_loss=validation_loss,
                val_accuracy=on_validation.accuracy if on_validation else math.nan,
                val_score=selection_score(options.select_by, on_validation.logits, validation_labels)
                if on_validation
                else math.nan,
                test_loss=on_test.loss,
                test_accuracy=on_test.accuracy,
                lr=lr,
                grad_norm=grad_norm,
                seconds=time.perf_counter() - start,
            )
            history.append(record)
            test_logits.append(on_test.logits)
            tracker.epoch(record, epsilons(model))
            report(job.fold, record)

            # Without validation there is nothing honest to choose by: the best weights are the last.
            last = ended(history, options)
            if best_on_validation(history) is record if on_validation else last:
                save_weights(best_path, model, metadata | {"epoch": epoch})
            if last or epoch % options.checkpoint_every == 0:
                write_history(job.folder / "history.csv", history)
                content = {name: holder.state_dict() for name, holder in states.items()}
                save_progress(last_path, history, test_logits, finished=False, **content)
        load_weights(best_path, model)
        if len(test):
            tracker.embeddings(*embed(model, test), split.test)
            if job.test_once:
                on_test, best = evaluate(model, test, options), best_on_validation(history).epoch - 1
                history[best] = replace(history[best], test_loss=on_test.loss, test_accuracy=on_test.accuracy)
                test_logits[best] = on_test.logits
                write_history(job.folder / "history.csv", history)
    # Only now is there nothing left to do: a fold killed before this line goes on from its last epoch.
    test_labels = dataset.labels[torch.as_tensor(split.test)].cpu()
    result = FoldResult(job.fold, history, torch.stack(test_logits), test_labels, parameters, job.chosen)
    result.save(last_path)
    return result


def ended(history: History, options: TrainerOptions) -> bool:
    """All epochs are done, or validation has not improved for as many as `patience` allows."""
    stalled = (
        bool(history and options.patience)
        and len(history) - best_on_validation(history).epoch >= options.patience
    )
    return stalled or len(history) >= options.epochs


def train_epoch(
    model, batches, optimizer, scaler, options: TrainerOptions, epoch: int, weights: Tensor | None = None
) -> tuple[Evaluation, float]:
    """One pass over the training part: loss and accuracy as seen while training, and the mean gradient norm."""
    model.train()
    loss_sum, correct, seen, norms = 0.0, 0, 0, []
    for step, batch in enumerate(batches, start=1):
        optimizer.zero_grad(set_to_none=True)
        with mixed_precision(batch.labels.device, options):
            logits = logits_of(model, batch)
            loss = cross_entropy(logits.float(), batch.labels, weights)
        value = loss.item()
        if not math.isfinite(value):
            raise TrainingError(
                f"the loss is {value} at epoch {epoch}, step {step}: lower optimizer.lr, set "
                "trainer.clip_grad_norm=1, or trainer.standardize=true for attributes of large values"
            )
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), options.clip_grad_norm or math.inf)
        scaler.step(optimizer)
        scaler.update()
        norms.append(norm)
        loss_sum += value * len(batch.labels)
        correct += int((logits.argmax(dim=1) == batch.labels).sum())
        seen += len(batch.labels)
    return Evaluation(loss_sum / seen, correct / seen, logits.detach()), float(torch.stack(norms).mean())


@torch.no_grad()
def evaluate(model: nn.Module, loader: GraphLoader, options: TrainerOptions) -> Evaluation:
    model.eval()
    logits, labels = [], []
    for batch in loader:
        with mixed_precision(batch.labels.device, options):
            logits.append(logits_of(model, batch).float())
        labels.append(batch.labels)
    scores, truth = torch.cat(logits), torch.cat(labels)
    correct = int((scores.argmax(dim=1) == truth).sum())
    return Evaluation(cross_entropy(scores, truth).item(), correct / len(truth), scores.cpu())


@torch.no_grad()
def embed(model: nn.Module, loader: GraphLoader) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings, labels and predictions of all graphs of a loader, on the CPU."""
    model.eval()
    parts = []
    for batch in loader:
        parts.append((embeddings_of(model, batch), batch.labels, logits_of(model, batch).argmax(dim=1)))
    embeddings, labels, predictions = (torch.cat(part).cpu() for part in zip(*parts, strict=True))
    return embeddings, labels, predictions


def mixed_precision(device: torch.device, options: TrainerOptions) -> torch.autocast:
    dtype = torch.float16 if options.precision == "fp16" else torch.bfloat16
    return torch.autocast(device.type, dtype=dtype, enabled=options.precision != "fp32")


def fused_where_possible(make_optimizer: Callable[..., torch.optim.Optimizer], model: nn.Module):
    """The fused kernel, where this torch has one for the optimizer and device: many small tensors at once."""
    try:
        return make_optimizer(model.parameters(), fused=True)
    except (RuntimeError, TypeError):
        return make_optimizer(model.parameters())


def epsilons(model: nn.Module) -> dict[str, float]:
    """The learnt ε of each layer, by the layer's name."""
    return {
        name.removesuffix(".eps"): p.item() for name, p in model.named_parameters() if name.endswith(".eps")
    }
