"""Packages: the directory pipeline/ is installed under the name paraforge, with configs/ inside it."""

from setuptools import find_packages, setup

setup(
    package_dir={"paraforge": "pipeline", "paraforge.configs": "configs"},
    packages=["paraforge", *(f"paraforge.{name}" for name in find_packages("pipeline")), "paraforge.configs"],
)
