"""`latentpde reconstruct`."""

from __future__ import annotations

import json
import math
import os
from contextlib import ExitStack
from glob import has_magic
from pathlib import Path
from typing import Annotated, Any

import typer

from latentpde.cli import model
from latentpde.cli.chunks import Chunk, Resume, Scheduler, Workers, is_store, reconstruct_store, require_store
from latentpde.cli.families import one_family, show_families
from latentpde.cli.holdout import Share, Threshold, WholeStations, check_holdout, run_holdout
from latentpde.cli.model_check import CheckModel, answers, require_checkable, run_check
from latentpde.cli.options import (
    MOST,
    AsJson,
    Kind,
    Quiet,
    Seed,
    check_range,
    command_line,
    parse_options,
)
from latentpde.cli.outliers import show_set_aside
from latentpde.cli.reading import takes_reading_options
from latentpde.errors import UsageError


@takes_reading_options
def reconstruct(
    observed: Annotated[
        list[Path], typer.Argument(help="CSV, Parquet, NetCDF or Zarr with readings; several files of cases.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="NetCDF file to write; a Zarr store, on all cores.")],
    of_file: dict[str, Any],
    pde: Annotated[
        str | None, typer.Option(help="PDE family, where the file does not name it; several with commas; or auto.")
    ] = None,
    average: Annotated[
        bool, typer.Option("--average", help="With several families: the mixture of all, not the likeliest one.")
    ] = False,
    method: Annotated[str | None, typer.Option(help="See `latentpde list methods`.")] = None,
    num_draws: Annotated[int, typer.Option(min=1, max=MOST, help="Posterior draws per case.")] = 12,
    resolution: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Cells along the shorter side. By default 128.")
    ] = None,
    seed: Seed = 0,
    kind: Annotated[
        Kind | None, typer.Option("--observed", help="What readings are: pooled for averages over their cells.")
    ] = None,
    time: Annotated[
        list[float] | None, typer.Option(help="Time of each snapshot, where the file does not say it.")
    ] = None,
    noise_std: model.NoiseStd = None,
    domain: model.Domain = None,
    initial: model.Initial = None,
    source: model.Source = None,
    trend: model.Trend = None,
    velocity: model.Velocity = None,
    robust: model.Robust = None,
    bounds: model.Bounds = None,
    fixed: model.Fixed = None,
    gaussian: model.Gaussian = None,
    source_prior_std: Annotated[float | None, typer.Option(help="Strength of the paper's source beforehand.")] = None,
    num_modes: Annotated[
        int | None, typer.Option(min=0, max=10_000, help="Fourier modes of the source; 0 for none. By default 12.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-O", help="Option of the method: num_steps=80. Repeatable.")
    ] = None,
    fine_initial: Annotated[
        Path | None, typer.Option(help="NetCDF file with a finer `initial`, in its group `truth` if it has one.")
    ] = None,
    keep_draws: Annotated[bool, typer.Option("--keep-draws", help="Also write every draw.")] = False,
    holdout: Share = None,
    holdout_groups: WholeStations = False,
    threshold: Threshold = None,
    check_model: CheckModel = False,
    report: Annotated[Path | None, typer.Option(help="Also write a report, a page that needs no network.")] = None,
    film: Annotated[
        Path | None, typer.Option(help="Also write the field at every time that was read: NetCDF file or Zarr store.")
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    chunk: Chunk = None,
    resume: Resume = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reconstruct the whole field from sparse readings."""
    given = dict(locals())  # all of the above, by their names
    from latentpde.estimators import methods
    from latentpde.estimators.base import DEFAULT_METHOD
    from latentpde.io.files import atomic_path, check_writable
    from latentpde.io.netcdf import open_fine_initial
    from latentpde.io.read import holds_cases, read
    from latentpde.io.reconstructions import summary_to_dataset, write_film, write_reconstruction
    from latentpde.io.zarr_store import atomic_folder, check_store_writable
    from latentpde.needs import decoding_memory, require_memory
    from latentpde.posterior import output_grid
    from latentpde.posterior.summary import Summary
    from latentpde.progress import progress
    from latentpde.questions.families import reconstruct as run
    from latentpde.validation import LARGEST, LATEST

    method = DEFAULT_METHOD if method is None else method
    check_holdout(holdout, holdout_groups)
    require_checkable(check_model, method, average)
    check_range(threshold, "--threshold", "a finite number", -LARGEST, LARGEST)
    known_noise, noise_setting = model.noise_of(noise_std)
    for one in time or []:
        check_range(one, "--time", f"finite and not negative, at most {LATEST:g}", 0.0, LATEST)
    initial_state = model.take_initial_state(given)
    settings = noise_setting | model.model_settings(given)
    options = parse_options(method, option or [])
    if twice := [name for name in settings if name in options]:
        raise UsageError(f"{', '.join(twice)} is given twice, as an option of its own and as --option")
    paths = [path for path in (*observed, output, report, film) if path is not None]
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise UsageError("the readings, --output, --report and --film must be different files")
    of_cases = {
        "family": one_family(pde, average),
        "noise_std": known_noise,
        "times": tuple(time) if time else None,
        "observed_kind": kind.value if kind else None,
    }
    num_draws = num_draws if methods.get(method).has_spread else 1
    call = {
        "method": method,
        "seed": seed,
        "source_prior_std": source_prior_std,
        "num_modes": num_modes,
        "show_progress": not quiet,
        **settings,
        **options,
    }
    require_store(output, workers=workers, scheduler=scheduler, chunk=chunk, resume=resume)
    if is_store(output) and (len(observed) > 1 or has_magic(str(observed[0])) or holds_cases(observed[0])):
        if check_model or any(one is not None for one in (report, film, fine_initial, holdout, threshold)):
            raise UsageError(
                "--report, --film, --holdout, --threshold, --check-model and --fine-initial are for a NetCDF file, not "
                "for a Zarr store"
            )
        return reconstruct_store(
            observed,
            output,
            {**of_cases, **of_file, **initial_state},
            {"family": pde, "num_draws": num_draws, **call},
            resolution=resolution,
            keep_draws=keep_draws,
            workers=workers,
            scheduler=scheduler,
            chunk=chunk,
            resume=resume,
            as_json=as_json,
            quiet=quiet,
        )
    if len(observed) > 1:
        raise UsageError(f"several files need a Zarr store to write, such as -o {output.stem}.zarr; got {output}")
    for path in paths[1:]:
        (check_store_writable if is_store(path) else check_writable)(path)
    fine = open_fine_initial(fine_initial) if fine_initial else None
    observation = read(observed[0], fine_initial=fine, **of_cases, **of_file, **initial_state)
    grid = output_grid(observation, resolution)
    if report is not None and min(grid.shape) < 2:
        raise UsageError(f"a report needs at least 2 x 2 cells to draw; --resolution gives {grid.shape}")
    draws_of = range(len(observation)) if keep_draws else [0] if report is not None else []
    require_memory(
        decoding_memory(math.prod(grid.shape), len(observation), num_draws, len(draws_of)),
        f"to decode {num_draws} draw(s) at {grid.shape[0]} x {grid.shape[1]}",
        "ask for a lower --resolution, fewer draws or fewer cases",
    )
    if film is not None:
        num_times = len(observation.distinct_times)
        require_memory(
            decoding_memory(math.prod(grid.shape) * num_times, len(observation), num_draws, 0),
            f"for --film at {num_times} times",
            "ask for a lower --resolution or fewer draws",
        )
    posterior = run(observation, pde, num_draws=num_draws, average=average, **call)
    show_families(posterior, quiet or as_json)
    posterior = run_check(posterior, check_model, quiet or as_json)
    pde = str(posterior.call["family"]) if pde is not None and not average else pde
    held_out = run_holdout(observation, pde, holdout, holdout_groups, **call)
    with ExitStack() as stack:
        stack.enter_context(progress("decode and write", 1, show=not quiet))
        # decoded once: the file and the page show the same numbers
        summary = Summary.of(posterior, resolution, draws_of=draws_of, threshold=threshold)
        dataset = summary_to_dataset(posterior, summary, keep_draws)
        dataset = dataset if held_out is None else dataset.merge(held_out.to_dataset())
        # all that is written is made before any is put in place
        dataset = dataset.assign_attrs(history=command_line())
        beside = atomic_folder if is_store(output) else atomic_path
        # as it was used: a comparison of families leaves out what the file says of one of them
        used = posterior.observation
        write_reconstruction(dataset, used, stack.enter_context(beside(output)), as_store=is_store(output))
        if film is not None:
            beside = atomic_folder if is_store(film) else atomic_path
            place = stack.enter_context(beside(film))
            write_film(posterior, place, resolution, command=command_line(), as_store=is_store(film))
        if report is not None:
            from latentpde.report.page import write_report

            extras = {"holdout": held_out, "threshold": threshold, "command": command_line()}
            write_report(posterior, stack.enter_context(atomic_path(report)), summary=summary, **extras)
    if as_json:
        done = {"output": str(output), "num_cases": len(observation), "method": posterior.method}
        scores = {} if held_out is None else {"holdout": held_out.scores.to_dict("index")}
        print(json.dumps(done | {"settings": posterior.settings} | answers(posterior) | scores))
    elif not quiet:
        if held_out is not None:
            print(held_out.to_text())
        show_set_aside(posterior)
        print(f"{len(observation)} case(s) reconstructed by {posterior.method} in {output}")
        if film is not None:
            print(f"The field at every time that was read: {film}")
        if report is not None:
            print(f"Open in a browser: {report}")
