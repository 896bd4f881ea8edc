"""How tests call the program in a process of its own, what keeps a reconstruction short, and changes of case files."""

import sys

PROGRAM = [sys.executable, "-c", "from latentpde.cli import main; main()"]
TINY = ["--resolution", "16", "--method", "map", "-O", "num_steps=2"]


def without(*names):
    return lambda ds: ds.drop_attrs(deep=False).assign_attrs({k: v for k, v in ds.attrs.items() if k not in names})


def with_attributes(**attributes):
    return lambda ds: ds.assign_attrs(attributes)
