"""One model on a dataset and its variants with perturbed edges: scores, paired differences and verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from egin_dgl.evaluation.metrics import METRICS
from egin_dgl.evaluation.protocols import ProtocolResult, headline
from egin_dgl.evaluation.statistics import practical_verdict
from egin_dgl.ewl.audit import Audit
from egin_dgl.reporting.formatting import Unit, unit_of
from egin_dgl.reporting.many_runs.comparison import compare_groups
from egin_dgl.reporting.many_runs.run_groups import ABSENT, RunGroup

VERDICTS = {"better": "matters", "worse": "harms"}  # of a loss, for those of a difference
REGION = 0.01  # of practical equivalence: 1 point; of an error such as RMSE, this fraction of it


@dataclass(frozen=True)
class Variant:
    """A perturbation of the edges by options of a dataset, and what the model loses by it."""

    name: str
    edge_features: str
    structure: str
    loses: str
    unchanged: str  # why graphs may be the same as before

    @property
    def overrides(self) -> tuple[str, str]:
        return f"dataset.edge_features={self.edge_features}", f"dataset.structure={self.structure}"


ORIGINAL = Variant("as it is", "keep", "keep", "", "")
VARIANTS = (
    ORIGINAL,
    Variant("constant", "constant", "keep", "edge features", "all edges have the same features"),
    Variant("permuted", "permuted", "keep", "their places", "the edges of a graph have the same features"),
    Variant("rewired", "keep", "rewired", "structure", "no two edges of a graph can exchange ends"),
    Variant("no edges", "keep", "none", "edges in all", "there are no edges"),
)


@dataclass(frozen=True)
class Worth:
    """What a model loses by a variant, positive if the variant is worse; the interval needs two folds."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class EdgeStudy:
    """One model on one dataset and its variants, with the same folds and seeds."""

    groups: Mapping[str, RunGroup]  # by the name of the variant; of those that were run
    audits: Mapping[str, Audit] = field(default_factory=dict)  # bounds and duplicates of each variant
    unchanged: frozenset[str] = frozenset()  # variants with the same graphs as the dataset: not applicable
    given_region: float | None = (
        None  # of practical equivalence, in the unit of the metric; None: the default
    )

    @property
    def original(self) -> RunGroup:
        return self.groups[ORIGINAL.name]

    @property
    def subject(self) -> str:
        return f"{self.original.model} on {self.original.dataset}"

    @property
    def metric(self) -> str:
        return self.original.metric or "accuracy"

    @property
    def unit(self) -> Unit:
        return unit_of(self.metric)

    @property
    def protocol(self) -> str:
        return headline(self.original.protocols) if self.original.results else "selected"

    def score(self, variant: Variant) -> ProtocolResult | None:
        group = self.groups.get(variant.name)
        return group.score(self.protocol) if group else None

    @property
    def region(self) -> float:
        """Region of practical equivalence, as a value of the metric."""
        if self.given_region is not None:
            return self.given_region / self.unit.factor
        score = self.score(ORIGINAL)
        relative = METRICS[self.metric].is_loss and score is not None
        return REGION * score.mean if relative and score else REGION

    @cached_property
    def worths(self) -> dict[str, Worth]:
        """By the name of each variant that has a score on folds of the original."""
        found = {}
        for variant in VARIANTS[1:]:
            one, other = self.score(ORIGINAL), self.score(variant)
            if one is None or other is None:
                continue
            group, sign = self.groups[variant.name], METRICS[self.metric].gain(1)
            if len(self.original.results.keys() & group.results.keys()) > 1:
                test = compare_groups(self.original, group, self.protocol, self.metric).test
                ends = sorted((sign * test.low, sign * test.high))
                found[variant.name] = Worth(sign * test.difference, *ends)
            elif self.original.results.keys() == group.results.keys():
                found[variant.name] = Worth(sign * (one.mean - other.mean))
        return found

    def verdict(self, variant: Variant) -> str:
        worth = self.worths.get(variant.name)
        if variant.name in self.unchanged:
            return "not applicable"
        if worth is None or worth.low is None or worth.high is None:
            return ABSENT
        verdict = practical_verdict(worth.low, worth.high, self.region)
        return VERDICTS.get(verdict, verdict)


def group_studies(groups: Sequence[RunGroup]) -> list[dict[str, RunGroup]]:
    """The groups of each model and dataset by the name of the variant, those that were run with the original only."""
    studies: dict[str, dict[str, RunGroup]] = {}
    names = {(one.edge_features, one.structure): one.name for one in VARIANTS}
    for group in groups:
        settings = dict(group.settings)
        options = tuple(str(settings.pop(f"dataset.{key}", "keep")) for key in ("edge_features", "structure"))
        if options in names:
            studies.setdefault(repr(sorted(settings.items(), key=str)), {})[names[options]] = group
    return [study for study in studies.values() if ORIGINAL.name in study]
