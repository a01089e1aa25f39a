"""The page of `egin train --help`: every option with its default and the comment on it in the YAML files.

Hydra's own page has no comments, and takes seconds to list all files of all groups.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from egin_dgl.cli import config_dirs

KEY = re.compile(r"(?P<indent> *)(?P<key>\w+):(?P<value>[^#]*)(?:# *(?P<comment>.*))?")
USAGE = """egin train OPTION=VALUE …

Cross-validate a model on a dataset. -m trains every combination of values that are separated by commas, such as
`egin train -m model=gin,egin_e seed=0,1`; --config-dir DIRECTORY adds your own models and datasets; --hydra-help lists the flags of
Hydra."""


def help_page(arguments: Sequence[str]) -> str:
    """The options of the configuration that the arguments give."""
    config_dir = config_dirs.conf_dir()
    user_dir, others = config_dirs.split_config_dir(arguments)
    overrides = [argument for argument in others if not argument.startswith("-")]
    cfg = config_dirs.compose_config(
        [*config_dirs.search_path(user_dir), *overrides], return_hydra_config=True
    )
    chosen: Any = OmegaConf.to_container(cfg.hydra.runtime.choices)
    directories = [config_dir, *([user_dir] if user_dir else [])]
    comments = read_comments(config_dirs.CONFIG_NAME, [config_dir])
    app = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    content: Any = OmegaConf.to_container(app)
    single = {name: value for name, value in content.items() if not isinstance(value, dict)}
    sections = [USAGE, "\n".join(format_options(single, comments))]
    for group in sorted({path.name for one in directories for path in one.iterdir() if path.is_dir()}):
        if choices := config_dirs.list_choices(group, *directories):
            lines = [f"{group}={chosen.get(group)}   of {', '.join(choices)}"]
            options = content.get(group)
            if isinstance(options, dict):
                files = [one / group for one in directories]
                lines += format_options(options, read_comments(chosen[group], files), f"{group}.")
            sections.append("\n".join(lines))
    return "\n\n".join(sections)


def format_options(
    options: Mapping[str, Any], comments: Mapping[str, str], prefix: str = ""
) -> Iterator[str]:
    """A line per option: its name, default and comment."""
    for name, value in options.items():
        key = f"{prefix}{name}"
        if name.startswith("_"):
            continue
        inner = {k[len(name) + 1 :]: comment for k, comment in comments.items() if k.startswith(f"{name}.")}
        if isinstance(value, dict) and any(inner.values()):
            yield from format_options(value, inner, f"{key}.")
        else:
            text = yaml.safe_dump(value, default_flow_style=True, width=1000).splitlines()[0]
            yield f"  {f'{key}={text}':<38} {comments.get(name, '')}".rstrip()


def read_comments(name: str, directories: Sequence[Path]) -> dict[str, str]:
    """The comments at the keys of a file and of the files that it inherits from, by dotted key."""
    paths = [one / f"{name}.yaml" for one in directories if (one / f"{name}.yaml").exists()]
    if not paths:
        return {}
    comments: dict[str, str] = {}
    parents: list[tuple[int, str]] = []  # indentation and key of the mappings around a line
    text = paths[-1].read_text(encoding="utf-8")
    for base in (yaml.safe_load(text) or {}).get("defaults", ()):
        if isinstance(base, str) and base != "_self_":
            comments |= read_comments(base, directories)
    for match in filter(None, map(KEY.fullmatch, text.splitlines())):
        indent = len(match["indent"])
        parents = [parent for parent in parents if parent[0] < indent]
        key = ".".join([*(parent for _, parent in parents), match["key"]])
        if match["comment"] or key not in comments:
            comments[key] = match["comment"] or ""
        if not match["value"].strip():
            parents.append((indent, match["key"]))
    return comments
