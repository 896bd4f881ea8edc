"""The program: its commands put together, and what becomes of an error."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from latentpde import __version__
from latentpde.cli.bench import bench
from latentpde.cli.check import check
from latentpde.cli.demo import demo
from latentpde.cli.evaluate import evaluate
from latentpde.cli.help import Command, Program
from latentpde.cli.interrupts import send_lost_interrupts_again
from latentpde.cli.list import list_
from latentpde.cli.reconstruct import reconstruct
from latentpde.cli.serve import serve
from latentpde.cli.simulate import simulate
from latentpde.cli.suggest import suggest
from latentpde.cli.train import train
from latentpde.errors import DataError, LatentPDEError, LatentPDEWarning
from latentpde.memory import keep_freed_memory

app = typer.Typer(
    name="latentpde",
    cls=Program,
    help="Whole fields, honest uncertainty and the PDE behind them, from a few noisy readings.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


for _command in (demo, simulate, check, reconstruct, suggest, evaluate, bench, train, serve):
    app.command(cls=Command)(_command)
app.command("list", cls=Command)(list_)


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"latentpde {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (anywhere on the line).")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors become one clean message and the exit code of their kind."""
    if arguments is None:
        _prepare_process()
        arguments = sys.argv[1:]
    debug = "--debug" in arguments
    try:
        try:
            with _printed_warnings():
                app([a for a in arguments if a != "--debug"], prog_name="latentpde")
        finally:
            sys.stdout.flush()  # here a full disk can still be told of
    except LatentPDEError as error:
        _fail(str(error), error.exit_code, debug)
    except SystemExit as leaving:
        if leaving.code == 130:  # what typer makes of Ctrl-C
            _fail("interrupted; nothing was overwritten", 130, debug)
        raise
    except KeyboardInterrupt:
        _fail("interrupted; nothing was overwritten", 130, debug)
    except BrokenPipeError:  # the reader, such as `head`, has enough
        _discard_output()
        sys.exit(141)
    except OSError as error:  # the system has refused; what is ours to check was checked before
        _discard_output()
        _fail(f"{error.filename or 'cannot write the output'}: {error.strerror or error}", DataError.exit_code, debug)
    except Exception as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # the second is torch's
            _fail("not enough memory; ask for a lower --resolution, or for fewer cases or draws", 1, debug)
        _fail(f"{type(error).__name__}: {error}\nThis is a fault in latentpde; --debug shows where.", 1, debug)


def _prepare_process() -> None:
    """What is right for a program and would be wrong for a library: settings of the whole process."""
    # as tidy as Ctrl-C: batch systems and service managers send this
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    send_lost_interrupts_again()
    keep_freed_memory()
    # what goes wrong there is told in our own words
    os.environ.setdefault("DASK_LOGGING", '{"distributed": "critical", "distributed.client": "critical"}')
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")  # of workers that Ctrl-C has ended
    os.environ["MPLBACKEND"] = "agg"  # pages and files only; another setting may not even exist here
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that is ASCII only, a name that is no UTF-8
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Keep Python from trying again, when it ends, to write what could not be written."""
    if isinstance(sys.stdout, TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _printed_warnings() -> Iterator[None]:
    """Print each of our warnings as one line; those of others stay as Python has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", LatentPDEWarning)
        show = warnings.showwarning

        def show_line(message, category, *where) -> None:
            if not issubclass(category, LatentPDEWarning):
                return show(message, category, *where)
            print(f"warning: {message}", file=sys.stderr)

        warnings.showwarning = show_line
        yield


def _fail(message: str, code: int, debug: bool) -> NoReturn:
    if debug:
        raise
    shown = message.encode("utf-8", "backslashreplace").decode()  # names of files may be no UTF-8
    print(f"error: {shown}", file=sys.stderr)
    sys.exit(code)
