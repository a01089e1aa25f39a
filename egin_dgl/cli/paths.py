"""Location of the configuration that comes with the package."""

from pathlib import Path


def conf_dir() -> Path:
    """Inside the package if it is installed; in a clone, next to it."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def list_choices(group: str, *directories: Path | None) -> list[str]:
    """The choices of a group in these configuration directories."""
    return sorted(
        {path.stem for directory in directories if directory for path in (directory / group).glob("*.yaml")}
    )
