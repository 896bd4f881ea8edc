"""What `--help` shows: no type beside flags, which take no value."""

from __future__ import annotations

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help names the type of options that take a value, and of no others."""

    def get_params(self, ctx):
        return without_types_of_flags(super().get_params(ctx))


class Program(TyperGroup):
    """The same for the program as a whole."""

    def get_params(self, ctx):
        return without_types_of_flags(super().get_params(ctx))


def without_types_of_flags(parameters: list) -> list:
    """The parameters, with nothing where typer would print ``<bool>``."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
