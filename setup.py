"""Maps the lab's own parts, which stand at the top of a checkout, into the package. All else is in pyproject.toml,
which cannot both find packages and map some."""

from setuptools import find_packages, setup

PARTS = ("agent", "flask_tools", "proxy_manager")

setup(
    packages=[*find_packages(include=["chaoslab*"]), *(f"chaoslab.{part}" for part in PARTS)],
    package_dir={f"chaoslab.{part}": part for part in PARTS},
)
