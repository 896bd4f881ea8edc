"""`latentpde simulate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from latentpde.cli.chunks import Resume, Scheduler, Workers, is_store, kept, require_store
from latentpde.cli.options import MOST, Kind, Quiet, Seed


class Split(StrEnum):
    train = "train"
    validation = "validation"
    test = "test"


def simulate(
    regime: Annotated[str, typer.Argument(help="See `latentpde list regimes`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="NetCDF file to write; a Zarr store, on all cores.")],
    num: Annotated[int, typer.Option(min=1, max=MOST, help="How many cases.")] = 8,
    seed: Seed = 0,
    split: Annotated[Split, typer.Option(help="Sets that share nothing.")] = Split.test,
    mask: Annotated[str | None, typer.Option(help="One mask for all cases; see `latentpde list masks`.")] = None,
    sparsity: Annotated[float | None, typer.Option(help="Share of coarse cells observed. By default 0.05.")] = None,
    noise_std: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 0.15,
    source: Annotated[bool, typer.Option(help="Whether the PDE has a source.")] = True,
    observed: Annotated[Kind, typer.Option(help="What a reading is of.")] = Kind.lowres_solve,
    resolution: Annotated[int, typer.Option(min=4, max=MOST, help="Cells per side of the true field.")] = 128,
    pooling: Annotated[int, typer.Option(min=1, max=MOST, help="Fine cells per coarse cell and side.")] = 4,
    time: Annotated[list[float] | None, typer.Option(help="Time of a snapshot; repeat for several.")] = None,
    domain: Annotated[
        str, typer.Option(help="Edges: periodic, dirichlet, neumann, or y=neumann,x=periodic and the like.")
    ] = "periodic",
    workers: Workers = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Simulate cases: sparse readings with their truth beside them."""
    from latentpde.io.files import check_writable
    from latentpde.simulation import Simulation, simulate_to_file

    require_store(output, workers=workers, scheduler=scheduler, resume=resume)
    if not is_store(output):
        check_writable(output)
    simulation = Simulation(
        regime=regime,
        seed=seed,
        split=split.value,
        mask=mask,
        sparsity=sparsity,
        noise_std=noise_std,
        source=source,
        observed=observed.value,
        shape=(resolution, resolution),
        domain=domain,
        pooling=pooling,
        times=tuple(time) if time else None,
    )
    if is_store(output):
        from latentpde.scheduling.simulate import simulate_many

        options = {"workers": workers, "scheduler": scheduler, "resume": resume}
        with kept():
            simulate_many(simulation, output, num, show_progress=not quiet, **options)
    else:
        simulate_to_file(simulation, output, num, show_progress=not quiet)
    if not quiet:
        print(f"{num} case(s) of {regime} in {output}. Next: latentpde reconstruct {output} -o out{output.suffix}")
