"""The demonstration: a bundled case, reconstructed, scored and put on a page."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path

from latentpde.estimators import reconstruct
from latentpde.estimators.base import make_estimator
from latentpde.io.files import atomic_path, check_writable, make_folder
from latentpde.io.netcdf import open_cases, write_netcdf
from latentpde.io.reconstructions import summary_to_dataset, write_reconstruction
from latentpde.posterior.summary import Summary
from latentpde.report.page import write_report
from latentpde.scores.evaluate import evaluate


def run_demo(folder: str | Path, *, method: str, seed: int = 0, show_progress: bool = False) -> dict:
    """Write ``cases.nc``, ``out.nc`` and ``report.html`` into a folder and return the scores against the truth.

    Args:
        folder: made where it does not exist.
        method: one of ``latentpde list methods``.
        seed: of the method's randomness.
        show_progress: draw a bar on a terminal, print lines elsewhere.
    """
    folder = Path(folder)
    make_estimator(method)  # an unknown one is refused before anything is written
    make_folder(folder)
    targets = [folder / name for name in ("cases.nc", "out.nc", "report.html")]
    for target in targets:
        check_writable(target)
    with as_file(files("latentpde") / "data" / "demo.nc") as path:
        cases = open_cases(path)
    posterior = reconstruct(cases, method=method, seed=seed, show_progress=show_progress)
    summary = Summary.of(posterior, draws_of=[0])
    out = summary_to_dataset(posterior, summary, keep_draws=posterior.has_spread)
    with ExitStack() as stack:  # all of it is made before any is put in place
        case_file, out_file, page = (stack.enter_context(atomic_path(target)) for target in targets)
        write_netcdf(cases, case_file)
        write_reconstruction(out.assign_attrs(history="latentpde demo"), posterior.observation, out_file)
        write_report(posterior, page, truth=cases["truth/field"], summary=summary)
    return evaluate(out, cases)
