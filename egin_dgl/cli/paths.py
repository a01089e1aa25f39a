"""Where the configuration is that comes with the package."""

from pathlib import Path


def conf_dir() -> Path:
    """Inside the package once it is installed; in the repository, beside it."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def options_of(group: str, *folders: Path | None) -> list[str]:
    """What these folders of configuration offer for a group."""
    return sorted({path.stem for folder in folders if folder for path in (folder / group).glob("*.yaml")})
