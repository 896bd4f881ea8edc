"""How a command shows and takes its options: no type beside flags in `--help`, and nothing that is empty."""

from __future__ import annotations

from typer.core import TyperCommand, TyperGroup

from latentpde.errors import UsageError


class Command(TyperCommand):
    """A command whose help names the type of options that take a value, and of no others, and which takes no empty
    argument: as a path it would mean this folder."""

    def get_params(self, ctx):
        return without_types_of_flags(super().get_params(ctx))

    def parse_args(self, ctx, args):
        before = [*args[:1], *args[:-1]]
        for word, last in zip(args, before, strict=True):
            if not word.strip() or (word.startswith("--") and word.endswith("=")):
                name = word.rstrip("=") or last
                named = f"{name} is given nothing" if name.startswith("-") else "an argument is empty"
                raise UsageError(f"{named}: give it a value, or leave it out")
        return super().parse_args(ctx, args)


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
