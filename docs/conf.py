"""Sphinx settings. The build and the pages need no network."""

import shutil
import sys
import warnings
from pathlib import Path

import latentpde
from latentpde.bench.points.measured import missing_data, pm10

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "LatentPDE"
author = "The LatentPDE developers"
copyright = author
version = release = latentpde.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery", "mathml"]
exclude_patterns = ["_build"]
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

highlight_language = "none"
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes stand in the source; a signature full of them is hard to read
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = "LatentPDE"
html_static_path = ["_static"]
html_css_files = ["latentpde.css"]
html_sidebars = {"**": []}
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}

# A tutorial without its data is shown without its numbers, and says so; whoever builds the pages hears of it, too.
if missing := missing_data(pm10):
    print(f"The tutorial on fine dust is built without its numbers: {missing}", file=sys.stderr)

# Warnings are part of what an example prints; where this machine keeps the package is not.
warnings.formatwarning = lambda message, category, *where: f"{category.__name__}: {message}\n"

# The examples write files beside themselves, so what is run is a copy.
shutil.rmtree(HERE / "_build" / "examples", ignore_errors=True)
shutil.copytree(HERE.parent / "examples", HERE / "_build" / "examples")
sphinx_gallery_conf = {
    "examples_dirs": "_build/examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "saved_figures.TeachingOrder",
    "image_scrapers": ("saved_figures.scrape",),
    "reset_modules": (),
    "abort_on_example_error": True,
    "run_stale_examples": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "copyfile_regex": "",
}
