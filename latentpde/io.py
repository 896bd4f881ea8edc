"""Files in and out. Reading checks; writing goes to a temporary file first, so nothing is ever half written."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import latentpde
from latentpde.errors import DataError, LatentPDEError, UsageError
from latentpde.grid import Grid
from latentpde.observation import Observation

if TYPE_CHECKING:
    import xarray as xr

    from latentpde.posterior import Posterior

# Accepted names of the axes of gridded readings; the first is ours.
_Y_NAMES = ("y_obs", "y", "lat", "latitude")
_X_NAMES = ("x_obs", "x", "lon", "longitude")


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that replaces it when the block ends well, and vanishes when it does not."""
    path = Path(path)
    check_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise `UsageError` where ``path`` cannot be written, before any work is done for it."""
    path = Path(path)
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: the folder {path.parent} does not exist; create it first")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no permission to write in {path.parent}")


def open_cases(path: str | Path) -> xr.DataTree:
    """A whole file in memory, the truths included where it has any."""
    import xarray as xr

    return _open(path, xr.open_datatree)


def open_observed(path: str | Path) -> xr.Dataset:
    """What was observed, and nothing of the truth."""
    import xarray as xr

    return _open(path, xr.open_dataset)


def write_netcdf(dataset: xr.Dataset | xr.DataTree, path: str | Path) -> None:
    with atomic_path(path) as temporary, _disk_errors(path):
        dataset.to_netcdf(temporary, engine="h5netcdf")


def append_samples(
    parts: Iterable[xr.DataTree],
    path: str | Path,
    num_samples: int,
    advance: Callable[[int], None] = lambda count: None,
) -> None:
    """Write trees that follow each other along ``sample`` to one file, holding one of them at a time."""
    import h5netcdf

    with atomic_path(path) as temporary, _disk_errors(path), h5netcdf.File(temporary, "w") as file:
        start = 0
        for part in parts:
            stop = start + part.sizes["sample"]
            for node in part.subtree:
                group = file if node.path == "/" else file.groups.get(node.name) or file.create_group(node.name)
                dataset = node.to_dataset(inherit=False)
                if start == 0:
                    _create(group, dataset, num_samples)
                for name, variable in dataset.variables.items():
                    if "sample" in variable.dims:
                        group.variables[str(name)][start:stop] = variable.values
            advance(stop - start)
            start = stop


def observation_from_dataset(
    data: xr.Dataset | xr.DataTree,
    *,
    noise_std: float | None = None,
    times: tuple[float, ...] | None = None,
    extent: tuple[float, float] | None = None,
) -> Observation:
    """Readings in the layout of ``cases.nc``; the arguments stand in for attributes that a file lacks."""
    import xarray as xr

    dataset = data.to_dataset() if isinstance(data, xr.DataTree) else data
    if "observed" not in dataset:
        raise DataError(f"expected a variable 'observed' with the readings; found: {_names(dataset)}")
    observed, attributes = dataset["observed"], dataset.attrs
    points = "sensor" in observed.dims
    initial, grid = _initial_and_grid(dataset, observed, points, extent)
    noise = _first(noise_std, dataset.get("noise_std"), attributes.get("noise_std"))
    if noise is None:
        raise DataError("the data do not say how noisy they are; add an attribute noise_std, or pass --noise-std")
    when = _times(dataset, observed, times)
    batched = "sample" in observed.dims
    axes = ("sample",) * batched + ("time",) * ("time" in observed.dims) + (("sensor",) if points else _axes(observed))
    extra = [str(d) for d in observed.dims if d not in axes]
    if extra:
        raise DataError(f"'observed' has axes {', '.join(extra)} that mean nothing here; expected {', '.join(axes)}")
    values = observed.transpose(*axes).values
    if batched and "time" not in observed.dims:
        values = values[:, None]
    positions = None
    if points:
        missing = [name for name in ("sensor_y", "sensor_x") if name not in dataset]
        if missing:
            raise DataError(f"readings at sensors need {' and '.join(missing)}; found: {_names(dataset)}")
        located = [
            dataset[name].transpose(*("sample",) * ("sample" in dataset[name].dims), "sensor")
            for name in ("sensor_y", "sensor_x")
        ]
        positions = np.stack([p.values for p in located], axis=-1)
    if isinstance(noise, xr.DataArray):
        noise = noise.broadcast_like(observed).transpose(*axes).values.reshape(values.shape)
    bounds = attributes.get("coefficient_bounds")
    known: dict[str, Any] = {
        "family": _text(attributes.get("family")),
        "regime": _text(attributes.get("regime")),
        "forcing_std": None if "forcing_std" not in attributes else float(attributes["forcing_std"]),
        "pooling": None if "pooling" not in attributes else int(attributes["pooling"]),
    }
    if bounds is not None:
        import torch

        known["bounds"] = torch.as_tensor(np.asarray(bounds, dtype=float).reshape(-1, 2))
    return Observation.from_arrays(
        values,
        initial,
        times=when,
        noise_std=noise,
        mask=dataset["mask"].transpose(*axes).values if "mask" in dataset else None,
        grid=grid,
        positions=positions,
        observed=_text(attributes.get("observed_kind")) or ("point" if points else "lowres-solve"),  # pyright: ignore[reportArgumentType]
        **known,
    )


def posterior_to_dataset(posterior: Posterior, resolution=None, keep_samples: bool = False) -> xr.Dataset:
    """What ``out.nc`` holds; CF conventions."""
    import xarray as xr

    from latentpde.posterior import LatentPosterior

    family = None
    arrays = {
        "mean": posterior.mean(resolution).assign_attrs(long_name="posterior mean"),
        "std": posterior.std(resolution).assign_attrs(long_name="posterior standard deviation"),
        "quantiles": posterior.quantiles(resolution=resolution).assign_attrs(long_name="pointwise quantiles"),
    }
    if isinstance(posterior, LatentPosterior):
        family = posterior.decoder.latent.family.name
        arrays["source_mean"] = posterior.source(resolution).assign_attrs(long_name="posterior mean of the source")
        arrays["source_std"] = posterior.source_std(resolution).assign_attrs(
            long_name="posterior standard deviation of the source"
        )
        arrays["coefficients"] = posterior.coefficients.assign_attrs(long_name="draws of the coefficients of the PDE")
    if keep_samples:
        arrays["samples"] = posterior.draws(resolution).assign_attrs(long_name="posterior draws of the field")
    fields = {"mean", "std", "quantiles", "source_mean", "source_std", "samples"}
    dataset = xr.Dataset({k: v.astype(np.float32) if k in fields else v for k, v in arrays.items()})
    for axis in ("y", "x"):
        dataset[axis].attrs = {"axis": axis.upper(), "long_name": f"{axis} at the cell's centre"}
    dataset["time"].attrs = {"long_name": "PDE time"}
    summary = {}
    for name, value in posterior.diagnostics.items():
        per_sample = np.ndim(value) >= 1 and posterior.observation.batched
        if np.ndim(value) == 1 and per_sample:
            dataset[f"diagnostic_{name}"] = ("sample", np.asarray(value))
        else:
            summary[name] = np.asarray(value).tolist()
    dataset.attrs = {
        "Conventions": "CF-1.11",
        "title": "field reconstructed from sparse readings",
        "source": f"latentpde {latentpde.__version__}, method {posterior.method}",
        "latentpde_version": latentpde.__version__,
        "method": posterior.method,
        "has_spread": int(posterior.has_spread),
        "seed": posterior.settings.get("seed", 0),
        "options": json.dumps(posterior.settings),
        "diagnostics": json.dumps(summary),
        **({"family": family} if family else {}),
    }
    return dataset


def _open(path: str | Path, opener) -> Any:
    path = Path(path)
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a NetCDF file")
    try:
        with path.open("rb") as file:
            magic = file.read(8)
        if magic.startswith(b"\x89HDF"):
            engine = "h5netcdf"
        elif magic.startswith(b"CDF"):
            engine = "scipy"
        else:
            raise DataError(f"{path} is not a NetCDF file")
        with opener(path, engine=engine) as opened:
            return opened.load()
    except LatentPDEError:
        raise
    except Exception as error:  # readers raise many kinds; whatever it was, the file cannot be read
        raise DataError(f"cannot read {path}: {error}; it may be truncated or damaged") from error


@contextmanager
def _disk_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}; what was there before is unchanged") from error


def _create(group, dataset: xr.Dataset, num_samples: int) -> None:
    import h5py

    inherited = getattr(group, "parent", None)
    for name, size in dataset.sizes.items():
        size = num_samples if name == "sample" else size
        if inherited is None or name not in inherited.dimensions or group is inherited:
            group.dimensions[str(name)] = size
    for name, variable in dataset.variables.items():
        kind = h5py.string_dtype() if variable.dtype.kind in "OUT" else variable.dtype
        created = group.create_variable(str(name), tuple(map(str, variable.dims)), dtype=kind)
        if "sample" not in variable.dims:
            created[...] = variable.values
        created.attrs.update(variable.attrs)
    group.attrs.update(dataset.attrs)


def _initial_and_grid(dataset, observed, points: bool, extent) -> tuple[Any, Grid]:
    array = dataset.get("initial")
    like = array if array is not None else observed
    if points and array is None:
        raise DataError("readings at sensors need an 'initial' state on a grid, which also fixes the domain")
    y, x = _axes(like)
    given = extent if extent is not None else dataset.attrs.get("extent")
    shape = (like.sizes[y], like.sizes[x])
    spans = [_span(dataset, name, size) for name, size in zip((y, x), shape, strict=True)]
    if given is not None:
        given = np.asarray(given, dtype=float).ravel()
        if given.shape != (2,):
            raise DataError(f"the extent must be two numbers (height, width), got {given.tolist()}")
        spans = [(start, float(length)) for (start, _), length in zip(spans, given, strict=True)]
    grid = Grid(shape, (spans[0][1], spans[1][1]), (spans[0][0], spans[1][0]))
    if array is None:
        return None, grid
    return array.transpose(*("sample",) * ("sample" in array.dims), y, x).values, grid


def _span(dataset, name: str, size: int) -> tuple[float, float]:
    """Start and length of an axis, from its coordinate where there is one: cell centres, evenly spaced."""
    if name not in dataset.coords or size < 2:
        return 0.0, 1.0
    centres = np.asarray(dataset[name].values, dtype=float)
    steps = np.diff(centres)
    if not np.isfinite(centres).all() or steps[0] <= 0 or not np.allclose(steps, steps[0], rtol=1e-4):
        raise DataError(f"the coordinate {name!r} must be evenly spaced and ascending; sort or regrid the data")
    step = (centres[-1] - centres[0]) / (size - 1)
    start, length = float(centres[0] - step / 2), float(step * size)
    return (0.0 if abs(start) < 1e-9 * length else start), length


def _axes(array) -> tuple[str, str]:
    found = []
    for names in (_Y_NAMES, _X_NAMES):
        match = [name for name in names if name in array.dims]
        if not match:
            raise DataError(
                f"expected an axis named one of {', '.join(names)}; {array.name!r} has {', '.join(map(str, array.dims))}"
            )
        found.append(match[0])
    return found[0], found[1]


def _times(dataset, observed, given) -> Any:
    if given is None and "time" in observed.dims and "time" in dataset.coords:
        given = dataset["time"].values
    if given is None:
        given = dataset.attrs.get("time")
    if given is None:
        family = _text(dataset.attrs.get("family"))
        if family is None:
            raise DataError("the data do not say when they were taken; add an attribute time, or pass --time")
        from latentpde.pde import get_family

        given = get_family(family).default_time
    times = np.atleast_1d(np.asarray(given))
    if times.dtype.kind in "mM":
        raise DataError("times must be numbers in the PDE's unit of time since the initial state, not dates")
    return times.astype(float)


def _first(*candidates):
    return next((c for c in candidates if c is not None), None)


def _text(value) -> str | None:
    return None if value is None or value == "" else str(value)


def _names(dataset) -> str:
    return ", ".join(map(str, dataset.data_vars)) or "no variables"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
