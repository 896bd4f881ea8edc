"""Files beside the code that say what the project is agree with the code."""

import tomllib
from importlib.resources import files
from pathlib import Path

import latentpde

ROOT = Path(__file__).parents[2]


def test_the_citation_is_of_this_version_and_of_the_paper_that_the_readme_names():
    citation, readme = (ROOT / "CITATION.cff").read_text(), " ".join((ROOT / "README.md").read_text().split())
    assert f"version: {latentpde.__version__}\n" in citation
    assert "Learning Interpretable PDE Representations for Generative Reconstructions with Structured" in citation
    for author in ("Tsao", "Chaney", "Veveakis"):
        assert author in readme
        assert f"family-names: {author}\n" in citation


def test_type_checkers_of_other_packages_see_the_annotations():
    package_data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert "py.typed" in package_data["latentpde"]
    assert (files("latentpde") / "py.typed").is_file()
