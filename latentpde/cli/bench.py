"""`latentpde bench`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from latentpde.cli.chunks import Scheduler
from latentpde.cli.options import MOST, Quiet, parse_names


def bench(
    name: Annotated[
        str, typer.Argument(help="See `latentpde list benchmarks`; `all` for every one, `report` for a page.")
    ],
    num: Annotated[
        int | None, typer.Option(min=1, max=MOST // 100, help="Cases per regime. By default the benchmark's own.")
    ] = None,
    methods: Annotated[list[str] | None, typer.Option(help="A method, or several with commas. Repeatable.")] = None,
    regimes: Annotated[list[str] | None, typer.Option(help="A regime, or several with commas. Repeatable.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of the test cases; another seed is a set that nothing has met.")
    ] = 7,
    resume: Annotated[bool, typer.Option("--resume/--again", help="Keep earlier runs, or run all of it anew.")] = True,
    outdated: Annotated[
        bool, typer.Option("--outdated", help="Run anew what other versions of the code have made, and keep the rest.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=1024, help="Processes; 1 uses all cores for one case after another.")
    ] = 1,
    scheduler: Scheduler = None,
    draw_only: Annotated[
        bool, typer.Option("--draw-only", help="Run nothing; draw what there is, and say what is missing.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of lines, tables and figures.")] = Path(
        "results"
    ),
    quiet: Quiet = False,
) -> None:
    """Run a benchmark: every table and figure of the paper, and those it lacks."""
    from latentpde.bench import benchmarks, run_benchmarks
    from latentpde.bench.jobs import SEED
    from latentpde.bench.page import write_page

    if name == "report":
        print(f"Open in a browser: {write_page(output)}")
        return
    names = [name]
    if name == "all":
        every = [one for one in benchmarks if one.in_all or draw_only]
        names = [one.name for one in every if seed == SEED or not one.own_seeds]
    said = set[str]()
    for shown in run_benchmarks(
        names,
        output,
        num=num,
        methods=parse_names(methods, "--methods"),
        regimes=parse_names(regimes, "--regimes"),
        seed=seed,
        workers=workers,
        scheduler=scheduler,
        again=not resume,
        outdated=outdated,
        draw_only=draw_only,
        show_progress=not quiet,
    ):
        for table in shown.tables:
            table.print()
        for sentence in shown.missing:
            if sentence not in said:  # several benchmarks may want the same networks
                print(sentence, file=sys.stderr)
            said.add(sentence)
    if not quiet:
        print(f"Lines, tables and figures: {output}. Next: latentpde bench report -o {output}")
