"""Packages: pipeline/ is installed under the name paraforge, with configs/ and stages/ inside it."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

BESIDE = ("configs", "stages")
"""Folders of the repository that are packages inside the package."""
PROJECT = ("dvc.yaml", ".dvc/config", "inputs/README.md")
"""Files of the repository, itself a project, of which 'paraforge init' makes another."""
LINKS = {"pipeline/stages": "../stages", ".mypy/paraforge": "../pipeline"}
"""Links of the repository, which setuptools would store as copies."""


class Build(build_py):
    """Add the files of a project, the pages of the documentation, and the changelog, from which errors say
    what replaces removed names."""

    def run(self):
        super().run()
        for name in () if self.editable_mode else PROJECT:
            target = Path(self.build_lib, "paraforge", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, target)
        for page in () if self.editable_mode else ("CHANGELOG.md", *Path("docs").glob("*.md")):
            target = Path(self.build_lib, "paraforge", page)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, target)


class SourceDistribution(sdist):
    """Adds the links of the repository, and leaves out what Python compiled."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, [name for name in files if "__pycache__" not in name])
        for name, target in LINKS.items():
            Path(base_dir, name).parent.mkdir(exist_ok=True)
            Path(base_dir, name).symlink_to(target)


setup(
    cmdclass={"build_py": Build, "sdist": SourceDistribution},
    package_dir={"paraforge": "pipeline", **{f"paraforge.{name}": name for name in BESIDE}},
    packages=[
        "paraforge",
        *(f"paraforge.{name}" for name in [*find_packages("pipeline", exclude=BESIDE), *BESIDE]),
    ],
)
