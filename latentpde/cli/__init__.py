"""The command line, a file for each command. Everything heavy is imported by the command that needs it."""

from latentpde.cli.program import main

__all__ = ["main"]
