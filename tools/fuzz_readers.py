"""Feed damaged and invented bytes to everything that reads a file or an option, for as long as it is given.

    pip install atheris
    python tools/fuzz_readers.py [--seconds 3600] [--readers netcdf config ...] [--folder build/fuzz]

atheris changes bytes of valid files and follows which lines of the package they reach. A reader may return or raise a
`LatentPDEError`, which is a refusal; anything else is a finding: the bytes are kept in the folder ``findings``, one for
each place that raised, and the last line says how many there are. So are bytes that end the process, take longer than
20 seconds or more than 4 GB. Mend what is found and add it to tests/hostile, whose tests call the same readers with
inputs that Hypothesis makes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib
import json
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from latentpde.errors import LatentPDEError

PACKAGE = Path(str(files("latentpde")))
INSTRUMENTED = ("latentpde", "h5netcdf", "xarray")
_REGIME = "balanced"


class Reader(NamedTuple):
    """Something that reads bytes from outside.

    Args:
        read: takes the bytes and a folder to put them into.
        seeds: gives valid ones to begin with.
        modules: what it consists of.
    """

    read: Callable[[bytes, Path], object]
    seeds: Callable[[Path], list[bytes]]
    modules: tuple[str, ...]


@functools.cache
def _cases():
    from latentpde.simulation import simulate

    return simulate(_REGIME, num=2, seed=1, shape=(16, 16), num_modes=2, sparsity=0.3)


def _netcdf_seeds(folder: Path) -> list[bytes]:
    """Cases in both formats of NetCDF, and what several snapshots and sensors look like."""
    from latentpde.io.netcdf import write_netcdf
    from latentpde.simulation import simulate

    trees = [_cases(), simulate(_REGIME, num=1, shape=(16, 16), num_modes=2, sparsity=0.3, observed="point")]
    trees.append(simulate(_REGIME, num=1, shape=(16, 16), num_modes=2, sparsity=0.3, times=(0.1, 0.2)))
    seeds = []
    for tree in trees:
        write_netcdf(tree, folder / "seed.nc")
        seeds.append((folder / "seed.nc").read_bytes())
        old = tree.to_dataset().drop_vars(["coefficient", "mask_name"], errors="ignore")
        old.to_netcdf(folder / "old.nc", engine="scipy", format="NETCDF3_CLASSIC")
        seeds.append((folder / "old.nc").read_bytes())
    return seeds


def _read_netcdf(data: bytes, folder: Path) -> None:
    from latentpde.io.netcdf import open_cases, open_fine_initial, open_observed
    from latentpde.io.observations import observation_from_dataset

    path = folder / "input.nc"
    path.write_bytes(data)
    for read in (open_cases, open_fine_initial):
        _refusing(lambda read=read: read(path))
    observation_from_dataset(open_observed(path))


def _csv_seeds(folder: Path) -> list[bytes]:
    return [
        b"x (km),y (km),t (h),value,sigma,station\n0,0,0,1.5,0.1,a\n1,0,0,2.5,0.1,b\n0,1,1,3.5,0.2,c\n1,1,1,4.5,,d\n",
        b"lon;lat;date;pm10\n8,0;50,0;01.05.2026 06:00;21,5\n9,0;50,5;13.05.2026 06:00;17,5\n8,5;51,0;14.05.2026;3\n",
        b'time,longitude,latitude,"no2"\n2026-05-01T06:00+02:00,8,50,1\n2026-05-01T07:00+02:00,359,51,2\n',
    ]


def _parquet_seeds(folder: Path) -> list[bytes]:
    import pandas as pd

    table = pd.DataFrame(
        {"x": [0.0, 1, 2], "y": [0.0, 1, 0], "t": pd.date_range("2026-05-01", periods=3), "v": [1.0, 2, 3]}
    )
    seeds = []
    for compression in ("snappy", "gzip", None):
        table.to_parquet(folder / "seed.parquet", compression=compression)
        seeds.append((folder / "seed.parquet").read_bytes())
    return seeds


def _images():
    import numpy as np
    import xarray as xr

    values = np.arange(24.0).reshape(2, 3, 4)
    values[0, 1, 2] = np.nan
    time = np.array(["2026-05-01T00", "2026-05-01T06"], dtype="datetime64[ns]")
    coordinates = {"time": time, "lat": [52.0, 51.0, 50.0], "lon": [358.0, 359.0, 0.0, 1.0]}
    return xr.Dataset({"t2m": (("time", "lat", "lon"), values, {"units": "K"})}, coordinates)


def _grid_seeds(folder: Path) -> list[bytes]:
    seeds = []
    for encoding in ({}, {"zlib": True, "shuffle": True}):
        _images().to_netcdf(folder / "seed.nc", engine="h5netcdf", encoding={"t2m": encoding})
        seeds.append((folder / "seed.nc").read_bytes())
    return seeds


_BETWEEN_FILES = b"\n---\n"
_STORES = {  # the files that a store of either format consists of, in the order of its bytes
    2: (".zgroup", ".zattrs", *(f"{a}/{f}" for a in ("t2m", "lat", "lon", "time") for f in (".zarray", ".zattrs"))),
    3: ("zarr.json", *(f"{a}/zarr.json" for a in ("t2m", "lat", "lon", "time"))),
}
_CHUNKS = {2: ("t2m/0.0.0", "lat/0", "lon/0", "time/0"), 3: ("t2m/c/0/0/0", "lat/c/0", "lon/c/0", "time/c/0")}


def _zarr_seeds(folder: Path) -> list[bytes]:
    seeds = []
    for version in (2, 3):
        store = folder / f"seed{version}.zarr"
        _images().to_zarr(store, zarr_format=version, consolidated=False, mode="w")
        parts = [(store / name).read_bytes() for name in (*_STORES[version], *_CHUNKS[version])]
        seeds.append(_BETWEEN_FILES.join([str(version).encode(), *parts]))
    return seeds


def _read_zarr(data: bytes, folder: Path) -> None:
    """A store out of its files one after the other, behind the number of its format."""
    from latentpde.io.read import read

    number, *parts = data.split(_BETWEEN_FILES)
    version = 2 if number == b"2" else 3
    with tempfile.TemporaryDirectory(dir=folder, suffix=".zarr") as place:
        store = Path(place)
        for name, part in zip((*_STORES[version], *_CHUNKS[version]), parts, strict=False):
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            (store / name).write_bytes(part)
        read(store)


def _read_named(name: str) -> Callable[[bytes, Path], None]:
    """What reads a user's file of this name, and looks at what was read."""

    def read_it(data: bytes, folder: Path) -> None:
        from latentpde.inspection import check

        path = folder / name
        path.write_bytes(data)
        repr(check(path))

    return read_it


def _reconstruction_seeds(folder: Path) -> list[bytes]:
    from latentpde.estimators import reconstruct

    seeds = []
    for method, options in (("map", {"num_steps": 2, "num_restarts": 1}), ("enkf", {"num_members": 4})):
        posterior = reconstruct(_cases(), method=method, num_draws=2, **options)
        posterior.to_netcdf(folder / "seed.nc", resolution=8)
        seeds.append((folder / "seed.nc").read_bytes())
    return seeds


def _read_reconstruction(data: bytes, folder: Path) -> None:
    from latentpde.io.netcdf import open_observed
    from latentpde.scores.evaluate import evaluate

    path = folder / "input.nc"
    path.write_bytes(data)
    json.dumps(evaluate(open_observed(path), _cases()), allow_nan=False)


def _config_seeds(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((PACKAGE / "training" / "configs").glob("*.toml"))]


def _read_config(data: bytes, folder: Path) -> None:
    from latentpde.training.config import load_config

    path = folder / "input.toml"
    path.write_bytes(data)
    load_config(path)


def _weights_seeds(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((PACKAGE / "nn" / "trained").glob("helmholtz-*.json"))]


def _read_weights(data: bytes, folder: Path) -> None:
    """A manifest beside the shipped tensors of the same role, and whatever its network is asked first."""
    from latentpde.nn.weights import load_weights
    from latentpde.pde import get_family

    roles = (role for role in ("encoder", "denoiser_enc", "denoiser_map") if f'"{role}"'.encode() in data[:400])
    role = next(roles, "denoiser_true")
    shipped = PACKAGE / "nn" / "trained" / f"helmholtz-{role}.safetensors"
    (folder / f"helmholtz-{role}.json").write_bytes(data)
    target = folder / shipped.name
    if not target.exists():
        target.symlink_to(shipped)
    trained = load_weights(role, get_family("helmholtz"), folder)
    if role != "encoder":
        _ = trained.schedule.alpha_bar, trained.statistics


def _tensors_seeds(folder: Path) -> list[bytes]:
    import torch

    from latentpde.training.checkpoints import Checkpoint

    Checkpoint(3, {"model.weight": torch.zeros(2, 3), "optimiser.0.step": torch.ones(())}, {"seed": 0}).write(folder)
    return [next(folder.glob("checkpoint-*")).read_bytes()]


def _read_tensors(data: bytes, folder: Path) -> None:
    from latentpde.training.checkpoints import Checkpoint

    path = folder / "checkpoint-000003.safetensors"
    path.write_bytes(data)
    Checkpoint.read(path)


def _results_seeds(folder: Path) -> list[bytes]:
    from latentpde.bench.jobs import jobs_on
    from latentpde.bench.lines import Entry, append_entries
    from latentpde.bench.rows import row

    (job,) = jobs_on([row("map")], ["helmholtz"])
    header = {**job.identity(), "version": "0.1.0", "hardware": "none", "threads": 1}
    scores = {"index": 0, "rmse": 0.1, "psd": 1.0, "mae": 0.1, "crps": 0.1, "rms_of_truth": 0.5, "seconds": 0.5}
    append_entries(folder / "seed.jsonl", [Entry(header, scores), Entry(header, {"index": 1, "failed": "no"})])
    return [(folder / "seed.jsonl").read_bytes()]


def _read_results(data: bytes, folder: Path) -> None:
    """Lines of a benchmark, and the table that is made of them."""
    from latentpde.bench.runner import run_benchmark

    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs" / "map.jsonl").write_bytes(data)
    run_benchmark("table1", folder, num=2, methods=["map"], regimes=["helmholtz"], draw_only=True)


def _tables_seeds(folder: Path) -> list[bytes]:
    table = {"title": "errors", "columns": ["method", "RMSE"], "rows": [["map", "0.1"]], "notes": ["fair"]}
    return [json.dumps({"title": "table 1", "versions": {"0.1.0": 1}, "tables": [table]}).encode()]


def _read_tables(data: bytes, folder: Path) -> None:
    from latentpde.bench.page import write_page

    (folder / "tables").mkdir(exist_ok=True)
    (folder / "tables" / "table1.json").write_bytes(data)
    write_page(folder)


def _options_seeds(folder: Path) -> list[bytes]:
    return [
        b'map\nnum_steps=80\nlearning_rate=0.1\nkappa=0.01:0.2',
        b'exact\nfixed={"kappa": 0.1}\ngaussian={"vx": [0.5, 0.1]}\nvx=-1:1',
        b'enkf\nnum_members=40\nbackground=map\nbackground_options={"num_steps": 3}',
    ]  # fmt: skip


def _read_options(data: bytes, folder: Path) -> None:
    """A method in the first line, then its options and bounds, as the command line has them."""
    from latentpde.cli.model import model_settings
    from latentpde.cli.options import parse_options
    from latentpde.estimators import make_estimator

    method, *items = data.decode("utf-8", "surrogateescape").split("\n")
    bounds = [item for item in items if item.count(":") == 1 and "{" not in item]
    model_settings({"bounds": bounds})
    make_estimator(method, **parse_options(method, [item for item in items if item not in bounds]))


READERS = {
    "netcdf": Reader(_read_netcdf, _netcdf_seeds, ("io.netcdf", "io.observations", "simulation")),
    "csv": Reader(_read_named("input.csv"), _csv_seeds, ("io.read", "inspection")),
    "parquet": Reader(_read_named("input.parquet"), _parquet_seeds, ("io.read", "inspection")),
    "grid": Reader(_read_named("input.nc"), _grid_seeds, ("io.read", "inspection")),
    "zarr": Reader(_read_zarr, _zarr_seeds, ("io.read",)),
    "reconstruction": Reader(_read_reconstruction, _reconstruction_seeds, ("io.netcdf", "scores.evaluate")),
    "config": Reader(_read_config, _config_seeds, ("training.config",)),
    "weights": Reader(_read_weights, _weights_seeds, ("nn.weights",)),
    "tensors": Reader(_read_tensors, _tensors_seeds, ("training.checkpoints", "io.tensors")),
    "results": Reader(_read_results, _results_seeds, ("bench", "bench.runner", "bench.studies")),
    "tables": Reader(_read_tables, _tables_seeds, ("bench.page", "report.render")),
    "options": Reader(_read_options, _options_seeds, ("cli.options", "estimators", "validation")),
}


def _refusing(call: Callable[[], object]) -> None:
    with contextlib.suppress(LatentPDEError):
        call()


def fuzz(name: str, seconds: int, folder: Path) -> None:
    """Run atheris on one reader; this ends the process."""
    import atheris

    reader, findings, corpus = READERS[name], folder / "findings", folder / name
    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        for module in reader.modules:
            importlib.import_module(f"latentpde.{module}")
    for place in (findings, corpus):
        place.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
    for seed in reader.seeds(scratch):
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    warnings.simplefilter("ignore")

    def read(data: bytes) -> None:
        try:
            _refusing(lambda: reader.read(data, scratch))
        except Exception as error:
            place = traceback.extract_tb(sys.exc_info()[2])[-1]
            kind = repr(error).partition("(")[0]
            kept = findings / f"{name}-{kind}-{Path(place.filename).stem}-{place.lineno}"
            if not kept.exists():
                kept.write_bytes(data)
                kept.with_name(kept.name + ".txt").write_text("".join(traceback.format_exception(error)))

    limits = [
        f"-max_total_time={seconds}",
        "-timeout=20",
        "-report_slow_units=20",
        "-rss_limit_mb=4096",
        "-max_len=200000",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={findings}/{name}-", str(corpus)], read)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600, help="of all readers together")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--only", choices=READERS, help=argparse.SUPPRESS)  # one reader, in this process
    arguments = parser.parse_args()
    if arguments.only:
        fuzz(arguments.only, arguments.seconds, arguments.folder)
    for name in arguments.readers:
        end = time.monotonic() + arguments.seconds / len(arguments.readers)
        while (left := int(end - time.monotonic())) > 0:  # what ends the process is kept, and it goes on
            command = [sys.executable, __file__, "--only", name, "--seconds", str(left), "--folder", arguments.folder]
            subprocess.run(command, check=False)
    found = [path for path in (arguments.folder / "findings").glob("*") if path.suffix != ".txt"]
    print(f"{len(found)} finding(s) in {arguments.folder / 'findings'}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
