"""HTML from the package's templates."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

import jinja2


def render(template: str, filters: dict[str, Callable] | None = None, **values) -> str:
    """Fill a template. What is put in is escaped, and what is missing is an error.

    Args:
        template: name of a file in ``report/templates``.
        filters: functions by the names that the template calls them.
        values: what the template shows.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("latentpde.report"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= filters or {}
    return environment.get_template(template).render(**values)


def read_template(name: str) -> str:
    """A file of ``report/templates`` as it stands, such as a script."""
    return (files("latentpde.report") / "templates" / name).read_text(encoding="utf-8")
