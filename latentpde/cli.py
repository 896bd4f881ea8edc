"""The command line: argument parsing only. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import json
import math
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from latentpde import __version__
from latentpde.errors import LatentPDEError, UsageError
from latentpde.memory import keep_freed_memory

app = typer.Typer(
    name="latentpde",
    help="Whole fields, honest uncertainty and the PDE behind them, from a few noisy readings.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no closing message.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs to read.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same result.")]


class Split(StrEnum):
    train = "train"
    validation = "validation"
    test = "test"


class Kind(StrEnum):
    lowres_solve = "lowres-solve"
    pooled = "pooled"
    point = "point"


class Listing(StrEnum):
    families = "families"
    regimes = "regimes"
    masks = "masks"
    methods = "methods"
    benchmarks = "benchmarks"


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


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path("demo"),
    method: Annotated[str | None, typer.Option(help="See `latentpde list methods`.")] = None,
    quiet: Quiet = False,
) -> None:
    """Reconstruct a bundled case and write a report page."""
    from latentpde.demo import run_demo
    from latentpde.estimators.base import DEFAULT_METHOD

    scores = run_demo(output, method=method or DEFAULT_METHOD, show_progress=not quiet)
    if not quiet:
        print(f"RMSE {scores['rmse']:.3f} against the truth, from 5 % of the cells with noise 0.15")
        print(f"Fields: {output / 'out.nc'}\nOpen in a browser: {output / 'report.html'}")


@app.command()
def simulate(
    regime: Annotated[str, typer.Argument(help="See `latentpde list regimes`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="NetCDF file to write.")],
    num: Annotated[int, typer.Option(min=1, help="How many cases.")] = 8,
    seed: Seed = 0,
    split: Annotated[Split, typer.Option(help="Sets that share nothing.")] = Split.test,
    mask: Annotated[str | None, typer.Option(help="One mask for all cases; see `latentpde list masks`.")] = None,
    sparsity: Annotated[float | None, typer.Option(help="Share of coarse cells observed. By default 0.05.")] = None,
    noise_std: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 0.15,
    source: Annotated[bool, typer.Option(help="Whether the PDE has a source.")] = True,
    observed: Annotated[Kind, typer.Option(help="What a reading is of.")] = Kind.lowres_solve,
    resolution: Annotated[int, typer.Option(min=4, help="Cells per side of the true field.")] = 128,
    pooling: Annotated[int, typer.Option(min=1, help="Fine cells per coarse cell and side.")] = 4,
    time: Annotated[list[float] | None, typer.Option(help="Time of a snapshot; repeat for several.")] = None,
    quiet: Quiet = False,
) -> None:
    """Simulate cases: sparse readings with their truth beside them."""
    from latentpde.io.files import check_writable
    from latentpde.simulation import Simulation, simulate_to_file

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
        pooling=pooling,
        times=tuple(time) if time else None,
    )
    simulate_to_file(simulation, output, num, show_progress=not quiet)
    if not quiet:
        print(f"{num} case(s) of {regime} in {output}. Next: latentpde reconstruct {output} -o out.nc")


@app.command()
def reconstruct(
    observed: Annotated[Path, typer.Argument(help="NetCDF file with `observed` and `initial`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="NetCDF file to write.")],
    pde: Annotated[str | None, typer.Option(help="PDE family, where the file does not name it.")] = None,
    method: Annotated[str | None, typer.Option(help="See `latentpde list methods`.")] = None,
    num_draws: Annotated[int, typer.Option(min=1, help="Posterior draws per case.")] = 12,
    resolution: Annotated[int | None, typer.Option(min=1, help="Cells along the shorter side. By default 128.")] = None,
    seed: Seed = 0,
    kind: Annotated[
        Kind | None, typer.Option("--observed", help="What readings are: pooled for averages over their cells.")
    ] = None,
    noise_std: Annotated[float | None, typer.Option(help="Noise, where the file does not say it.")] = None,
    time: Annotated[
        list[float] | None, typer.Option(help="Time of each snapshot, where the file does not say it.")
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(help="Interval of a coefficient: kappa=0.01:0.2. Repeatable.")
    ] = None,
    source_prior_std: Annotated[float | None, typer.Option(help="Strength of the source beforehand.")] = None,
    num_modes: Annotated[
        int | None, typer.Option(min=0, help="Fourier modes of the source; 0 for none. By default 12.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-O", help="Option of the method: num_steps=80. Repeatable.")
    ] = None,
    fine_initial: Annotated[
        Path | None, typer.Option(help="NetCDF file with a finer `initial`, in its group `truth` if it has one.")
    ] = None,
    keep_draws: Annotated[bool, typer.Option("--keep-draws", help="Also write every draw.")] = False,
    report: Annotated[Path | None, typer.Option(help="Also write a report page about the first case.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reconstruct the whole field from sparse readings."""
    from latentpde.estimators import reconstruct as run
    from latentpde.estimators.base import DEFAULT_METHOD
    from latentpde.io.files import check_writable
    from latentpde.io.layout import observation_from_dataset
    from latentpde.io.netcdf import open_fine_initial, open_observed

    method = method or DEFAULT_METHOD
    if noise_std is not None and not 0 < noise_std < math.inf:
        raise UsageError(f"--noise-std must be positive and finite, got {noise_std}")
    if not all(0 <= t < math.inf for t in time or []):
        raise UsageError(f"--time must be finite and not negative, got {', '.join(map(str, time or []))}")
    intervals, options = _intervals(bounds or []), _options(method, option or [])
    paths = [path for path in (observed, output, report) if path is not None]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("the readings, --output and --report must be different files")
    for path in paths[1:]:
        check_writable(path)
    observation = observation_from_dataset(
        open_observed(observed),
        family=pde,
        noise_std=noise_std,
        times=tuple(time) if time else None,
        observed_kind=kind.value if kind else None,
        fine_initial=open_fine_initial(fine_initial) if fine_initial else None,
    )
    posterior = run(
        observation,
        pde,
        method=method,
        num_draws=num_draws,
        seed=seed,
        bounds=intervals or None,
        source_prior_std=source_prior_std,
        num_modes=num_modes,
        show_progress=not quiet,
        **options,
    )
    posterior.to_netcdf(output, resolution, keep_draws, command=" ".join(["latentpde", *sys.argv[1:]]))
    if report is not None:
        posterior.report(report, resolution=resolution)
    for case in range(len(observation)):
        for warning in posterior.warnings(case):
            print(f"warning, case {case}: {warning}", file=sys.stderr)
    if as_json:
        summary = {"output": str(output), "num_cases": len(observation), "method": posterior.method}
        print(json.dumps(summary | {"settings": posterior.settings}))
    elif not quiet:
        print(f"{len(observation)} case(s) reconstructed by {posterior.method} in {output}")


@app.command()
def evaluate(
    reconstruction: Annotated[Path, typer.Argument(help="File that `reconstruct` wrote.")],
    cases: Annotated[Path, typer.Argument(help="File that `simulate` wrote, with the truths.")],
    as_json: AsJson = False,
) -> None:
    """Score a reconstruction against the truth."""
    from latentpde.io.netcdf import open_cases, open_observed
    from latentpde.scores.evaluate import evaluate as run

    scores = run(open_observed(reconstruction), open_cases(cases))
    if as_json:
        print(json.dumps(scores))
        return
    labels = {
        "rmse": "RMSE",
        "mae": "MAE",
        "psd": f"PSD log error (floor {scores['psd_floor']:g})",
        "crps": {
            "fair": "CRPS (fair)",
            "quantiles": "CRPS (from quantiles; exact with --keep-draws)",
            "point": "CRPS (of a point estimate: the MAE)",
        }[scores["crps_estimator"]],
        "coverage90": "coverage of 90 % intervals",
        "spread_error": "spread / error",
    }
    print(f"{scores['num_cases']} case(s), method {scores['method']}, means over cases")
    for name, label in labels.items():
        value = scores.get(name)
        print(f"  {label:<52}{'none' if value is None else f'{value:.4f}'}")


@app.command()
def bench(
    name: Annotated[
        str, typer.Argument(help="See `latentpde list benchmarks`; `all` for every one, `report` for a page.")
    ],
    num: Annotated[int | None, typer.Option(min=1, help="Cases per regime. By default the benchmark's own.")] = None,
    methods: Annotated[list[str] | None, typer.Option(help="A method, or several with commas. Repeatable.")] = None,
    regimes: Annotated[list[str] | None, typer.Option(help="A regime, or several with commas. Repeatable.")] = None,
    resume: Annotated[bool, typer.Option("--resume/--again", help="Keep earlier runs, or run all of it anew.")] = True,
    workers: Annotated[int, typer.Option(min=1, help="Processes; 1 uses all cores for one case after another.")] = 1,
    draw_only: Annotated[bool, typer.Option("--draw-only", help="Run nothing; show what there is.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of lines, tables and figures.")] = Path(
        "results"
    ),
    quiet: Quiet = False,
) -> None:
    """Run a benchmark: every table and figure of the paper, and those it lacks."""
    from latentpde.bench import benchmarks, run_benchmarks
    from latentpde.bench.page import write_page
    from latentpde.bench.tables import Table

    if name == "report":
        print(f"Open in a browser: {write_page(output)}")
        return
    names = [benchmark.name for benchmark in benchmarks if benchmark.in_all] if name == "all" else [name]
    for shown in run_benchmarks(
        names,
        output,
        num=num,
        methods=_names(methods),
        regimes=_names(regimes),
        workers=workers,
        again=not resume,
        draw_only=draw_only,
        show_progress=not quiet,
    ):
        for item in shown:
            if isinstance(item, Table):
                item.print()
    if not quiet:
        print(f"Lines, tables and figures: {output}. Next: latentpde bench report -o {output}")


def _names(items: list[str] | None) -> list[str]:
    return [name.strip() for item in items or [] for name in item.split(",") if name.strip()]


@app.command()
def train(
    config: Annotated[str, typer.Argument(help="TOML file, or a shipped configuration such as helmholtz-compact.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an earlier run stopped.")] = False,
    stage: Annotated[str | None, typer.Option(help="One stage alone: encoder, denoiser_enc, ...")] = None,
    quiet: Quiet = False,
) -> None:
    """Train the networks of a PDE family."""
    from latentpde.training.loop import train as run

    written = run(config, resume=resume, stage=stage, show_progress=not quiet)
    if not quiet:
        print(f"Weights: {', '.join(map(str, written))}. Use them with: -O weights={written[0].parent}")


@app.command("list")
def list_(what: Annotated[Listing, typer.Argument()], as_json: AsJson = False) -> None:
    """List families, regimes, masks, methods or benchmarks."""
    from latentpde.listing import rows

    table = rows(what.value)
    if as_json:
        print(json.dumps(table))
        return
    width = max(len(row["name"]) for row in table)
    for row in table:
        print(f"{row['name']:<{width}}  {row['summary']}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors become one clean message and the exit code of their kind."""
    if arguments is None:
        # as tidy as Ctrl-C: batch systems and service managers send this
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        keep_freed_memory()
        arguments = sys.argv[1:]
    debug = "--debug" in arguments
    try:
        app([a for a in arguments if a != "--debug"], prog_name="latentpde")
    except LatentPDEError as error:
        _fail(str(error), error.exit_code, debug)
    except SystemExit as leaving:
        if leaving.code == 130:  # what typer makes of Ctrl-C
            _fail("interrupted; nothing was overwritten", 130, debug)
        raise
    except KeyboardInterrupt:
        _fail("interrupted; nothing was overwritten", 130, debug)
    except MemoryError:
        _fail("not enough memory; ask for a lower --resolution, or for fewer cases or draws", 1, debug)
    except Exception as error:
        if "can't allocate memory" in str(error):  # torch's way to say it
            _fail("not enough memory; ask for a lower --resolution, or for fewer cases or draws", 1, debug)
        _fail(f"{type(error).__name__}: {error}\nThis is a fault in latentpde; --debug shows where.", 1, debug)


def _fail(message: str, code: int, debug: bool) -> NoReturn:
    if debug:
        raise
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


def _intervals(items: list[str]) -> dict[str, tuple[float, float]]:
    intervals = {}
    for item in items:
        name, _, interval = item.partition("=")
        try:
            lower, upper = map(float, interval.split(":"))
        except ValueError as error:
            raise UsageError(f"--bounds takes name=lower:upper, such as kappa=0.01:0.2; got {item!r}") from error
        if not -math.inf < lower < upper < math.inf:
            raise UsageError(f"--bounds needs finite numbers, the lower one first; got {item!r}")
        intervals[name] = (lower, upper)
    return intervals


def _options(method: str, items: list[str]) -> dict[str, object]:
    """Options of a method, each read as the kind of thing that its default is."""
    from dataclasses import asdict

    from latentpde.estimators.base import make_estimator

    defaults = asdict(make_estimator(method))
    options = {}
    for item in items:
        name, equals, text = item.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"--option takes name=value, such as num_steps=80; got {item!r}")
        if name not in defaults:
            raise UsageError(f"method {method!r} has no option {name!r}; it has: {', '.join(defaults) or 'none'}")
        options[name] = _value(name, text, defaults[name])
    return options


def _value(name: str, text: str, default: object) -> object:
    if isinstance(default, str):
        return text
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a finite number"}.get(type(default))
    fits = type(value) is type(default) and not (isinstance(value, float) and not math.isfinite(value))
    if wanted is not None and not fits:
        raise UsageError(f"option {name} must be {wanted}, such as {json.dumps(default)}; got {text!r}")
    return value
