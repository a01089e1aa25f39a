"""From a composed configuration to recorded settings, for one run and for all jobs of a sweep."""

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from egin_dgl.cli.validation import validate_settings
from egin_dgl.data.readers.search_path import DEFAULT_URL
from egin_dgl.errors import ConfigError, EginError, one_line
from egin_dgl.runs.settings import RunSpec, Settings
from egin_dgl.runs.sweep_dir import SweepJob

COMMAND_OPTIONS = ("run", "resume", "trust")  # of a command, not of a run
REFERENCE = re.compile(r"\$\{(\w+(?:\.\w+)+)\}")


def resolve_settings(cfg: DictConfig | Settings) -> Settings:
    """Return the validated settings of a configuration, with all interpolations resolved."""
    content: Any = OmegaConf.to_container(cfg, resolve=True) if isinstance(cfg, DictConfig) else cfg
    settings = validate_settings({str(name): value for name, value in content.items()})
    return {name: value for name, value in settings.items() if name not in COMMAND_OPTIONS}


def make_spec(cfg: DictConfig, hydra: HydraConf | DictConfig | None = None) -> RunSpec:
    """Return what run.json records of a run.

    Args:
        cfg: composed configuration of the app.
        hydra: Hydra's own, with the overrides and choices of the command. Default: none.
    """
    content: Any = OmegaConf.to_container(cfg, resolve=False)
    settings, references = resolve_settings(cfg), find_references(content)
    if hydra is None:
        return RunSpec(settings, references)
    choices = {
        str(group): str(option)
        for group, option in hydra.runtime.choices.items()
        if option is not None and "/" not in str(group)
    }
    sources = [source.path for source in hydra.runtime.config_sources if source.provider == "command-line"]
    return RunSpec(
        settings, references, list(hydra.overrides.task), choices, str(sources[0]) if sources else None
    )


def validate_recorded(spec: RunSpec, directory: Path, trust: bool, config_dir: Path | None = None) -> RunSpec:
    """Return the record of a directory with validated settings.

    Args:
        trust: allow classes that are not of egin_dgl or torch, and addresses to download from.
        config_dir: that of this command, which must be given if the recorded command had one.
    """
    if spec.config_dir is not None and config_dir is None:
        raise ConfigError(f"{directory} was started with --config-dir {spec.config_dir}; give that again")
    dataset = spec.settings.get("dataset")
    try:
        if not trust and isinstance(dataset, dict) and dataset.get("url") not in (None, DEFAULT_URL):
            raise ConfigError(f"dataset.url={dataset.get('url')} is no address to download from untrusted")
        settings = validate_settings(spec.settings, trust)
    except ConfigError as error:
        hint = "" if trust else "; if you trust the author of the directory, add trust=true"
        raise ConfigError(f"{directory}: {error}{hint}") from error
    return replace(spec, settings={k: v for k, v in settings.items() if k not in COMMAND_OPTIONS})


def find_references(content: dict, prefix: str = "") -> dict[str, str]:
    """Return the options that are defined as another option, ``T_max: ${trainer.epochs}``."""
    found: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            found |= find_references(value, f"{prefix}{name}.")
        elif isinstance(value, str) and (match := REFERENCE.fullmatch(value)):
            found[f"{prefix}{name}"] = match[1]
    return found


def expand_sweep(config: DictConfig) -> list[SweepJob]:
    """Compose and validate every point of a grid sweep; a point that cannot run is an error.

    Args:
        config: configuration of the multirun, with Hydra's node.
    """
    hydra = config.hydra
    typed = [
        *(f"{key}={value}" for key, value in (hydra.sweeper.params or {}).items()),
        *hydra.overrides.task,
    ]
    values: dict[str, list[str]] = {}
    swept = set()
    for override in OverridesParser.create().parse_overrides(typed):
        key = override.get_key_element()
        if override.is_sweep_override() and not override.is_discrete_sweep():
            raise ConfigError(
                f"{override.input_line}: a grid takes lists of values; intervals are for a search"
            )
        swept |= {key} if override.is_sweep_override() else set()
        each = override.sweep_string_iterator() if key in swept else [override.get_value_element_as_str()]
        values[key] = [f"{key}={value}" for value in each]
    jobs = []
    for number, point in enumerate(itertools.product(*values.values())):
        try:
            jobs.append(compose_job(hydra, number, list(point)))
        except EginError as error:
            varied = " ".join(word for word, key in zip(point, values, strict=True) if key in swept)
            raise ConfigError(
                f"job {number + 1} ({varied}): {one_line(error)}; no job was started"
            ) from error
    return jobs


def compose_job(hydra: DictConfig, number: int, point: list[str]) -> SweepJob:
    overrides = [*hydra.overrides.hydra, f"hydra.job.num={number}", *point]
    cfg = compose(hydra.job.config_name, overrides, return_hydra_config=True)
    name = str(Path(cfg.hydra.sweep.subdir))
    app = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    return SweepJob(name, make_spec(app, cfg.hydra))
