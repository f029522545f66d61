"""The location of this version's documentation: the installed package or the clone."""

from pathlib import Path


def page(name: str) -> str:
    """Return the path of a page, such as ``models``, for an error or a help text to name."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "docs"
    return str((installed if installed.is_dir() else package.parent / "docs") / f"{name}.md")
