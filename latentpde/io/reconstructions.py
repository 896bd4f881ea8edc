"""Reconstructions as datasets: the layout of ``out.nc``, which follows the CF conventions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import latentpde
from latentpde.domain import Domain
from latentpde.errors import DataError
from latentpde.io.netcdf import read_groups, write_netcdf
from latentpde.io.readings import GROUP, readings_from_dataset, readings_to_dataset
from latentpde.io.users import in_users_frame
from latentpde.io.zarr_store import is_zarr, read_zarr, write_zarr
from latentpde.observation import Observation
from latentpde.posterior import PDEPosterior, Posterior, Resolution
from latentpde.posterior.spread import QUANTILES
from latentpde.posterior.summary import Summary
from latentpde.spectra import Spectrum

if TYPE_CHECKING:
    import xarray as xr

_FIELD = ("case", "y", "x")
#: Variables on the grid, with their axes and what they are.
_VARIABLES = {
    "mean": (_FIELD, "posterior mean"),
    "std": (_FIELD, "posterior standard deviation"),
    "quantiles": (("case", "quantile", "y", "x"), "pointwise quantiles"),
    "source_mean": (_FIELD, "posterior mean of the source"),
    "source_std": (_FIELD, "posterior standard deviation of the source"),
    "probability_above": (_FIELD, "probability that the field lies above the threshold"),
    "draws": (("case", "draw", "y", "x"), "posterior draws of the field"),
}


def posterior_to_dataset(posterior: Posterior, resolution: Resolution = None, keep_draws: bool = False) -> xr.Dataset:
    """Decode a posterior into what ``out.nc`` holds; arguments as those of `Posterior.summary`."""
    draws_of = range(posterior.observation.num_cases) if keep_draws else ()
    return summary_to_dataset(posterior, Summary.of(posterior, resolution, draws_of=draws_of), keep_draws)


def summary_to_dataset(posterior: Posterior, summary: Summary, keep_draws: bool = False) -> xr.Dataset:
    """What ``out.nc`` holds, where the posterior is decoded already.

    >>> import latentpde as lp
    >>> posterior = lp.reconstruct(lp.simulate("diffusion", num=2), method="map", num_steps=5)
    >>> dataset = summary_to_dataset(posterior, Summary.of(posterior, resolution=32))
    >>> sorted(dataset.data_vars)[:5]
    ['coefficient_mean', 'coefficient_quantiles', 'coefficient_std', 'coefficients', 'diagnostic_misfit']

    Args:
        posterior: where the coefficients, the diagnostics and the settings come from.
        summary: of all its cases; with their draws where those are to be kept.
        keep_draws: whether every draw goes into the dataset.
    """
    import xarray as xr

    observation = posterior.observation
    fields = {name: getattr(summary, name) for name in _VARIABLES if name != "draws"}
    if keep_draws:
        fields["draws"] = np.stack([summary.draws[case] for case in summary.cases])
    y, x = (c.numpy() for c in summary.grid.coordinates())
    with np.errstate(over="ignore"):  # what is too large for 32 bits is found below
        dataset = xr.Dataset(
            {
                name: (axes, fields[name].astype(np.float32), {"long_name": long_name})
                for name, (axes, long_name) in _VARIABLES.items()
                if fields.get(name) is not None
            },
            coords={
                "time": float(observation.times[-1]) + observation.start,
                "quantile": list(QUANTILES),
                "y": y,
                "x": x,
            },
        )
    if not np.isfinite(dataset["mean"]).all():
        raise DataError(
            f"{posterior.method} found no finite field; do bounds or times let the PDE grow without limit, "
            "or is a step of the method too long?"
        )
    for axis in ("y", "x"):
        dataset[axis].attrs = {"axis": axis.upper(), "long_name": f"{axis} at the cell's centre"}
    dataset["time"].attrs = {"long_name": "PDE time"}
    dataset["quantile"].attrs = {"long_name": "share of the probability below a quantile"}
    dataset = dataset if observation.batched else dataset.isel(case=0)
    if isinstance(posterior, PDEPosterior):
        dataset = dataset.merge(_coefficients(posterior))
    if summary.threshold is not None:
        dataset["probability_above"].attrs |= {"threshold": summary.threshold, "units": "1"}
    if posterior.has_spread:
        dataset["quantiles"].attrs["comment"] = posterior.quantiles_note
    prints = np.array(observation.fingerprints, dtype=np.int64)
    dataset["readings_crc32"] = ("case", prints) if observation.batched else ((), prints[0])
    dataset["readings_crc32"].attrs = {"long_name": "fingerprint of the readings that this was made from"}
    dataset = dataset.merge(_diagnostics(posterior)).assign_attrs(_attributes(posterior))
    if observation.frame is None:
        return dataset
    return in_users_frame(dataset, observation.frame, dataset.attrs.get("family"))


def write_reconstruction(
    dataset: xr.Dataset, observation: Observation, path: str | Path, *, as_store: bool | None = None
) -> None:
    """Write what `summary_to_dataset` made, with the readings beside it in a group of their own.

    >>> import latentpde as lp, tempfile
    >>> posterior = lp.reconstruct(lp.simulate("diffusion", num=1), method="map", num_steps=5)
    >>> path = Path(tempfile.mkdtemp()) / "out.nc"
    >>> write_reconstruction(posterior_to_dataset(posterior, 16), posterior.observation, path)
    >>> readings, settings = open_reconstruction(path)
    >>> readings.num_readings.equal(posterior.observation.num_readings), settings["method"]
    (True, 'map')

    Args:
        dataset: the root of the file.
        observation: what it was made from.
        path: of a NetCDF file or a Zarr store, which is replaced only when the new one is complete.
        as_store: whether it is a Zarr store; by default by its ending.
    """
    import xarray as xr

    as_store = Path(path).suffix == ".zarr" if as_store is None else as_store
    write = write_zarr if as_store else write_netcdf
    write(xr.DataTree.from_dict({"/": dataset, f"/{GROUP}": readings_to_dataset(observation)}), path)


def write_film(
    posterior: Posterior,
    path: str | Path,
    resolution: Resolution = None,
    *,
    command: str = "",
    as_store: bool | None = None,
) -> None:
    """Write the field at every time that was read: mean, standard deviation and quantiles, with an axis of time.

    >>> import latentpde as lp, tempfile, xarray as xr
    >>> posterior = lp.reconstruct(lp.simulate("diffusion", num=1, times=(0.1, 0.2)), method="map", num_steps=5)
    >>> path = Path(tempfile.mkdtemp()) / "film.nc"
    >>> write_film(posterior, path, 16)
    >>> dict(xr.load_dataset(path)["mean"].sizes)
    {'case': 1, 'time': 2, 'y': 16, 'x': 16}

    Args:
        posterior: of all cases.
        path: of a NetCDF file or a Zarr store, which is replaced only when the new one is complete.
        resolution: as that of `Posterior.mean`.
        command: for the attribute ``history``.
        as_store: whether it is a Zarr store; by default by its ending.
    """
    import xarray as xr

    dataset = posterior.to_xarray(resolution=resolution)
    for name in ("mean", "std", "quantiles"):
        words = dataset[name].attrs.get("long_name", _VARIABLES[name][1])
        dataset[name] = dataset[name].astype(np.float32).assign_attrs(dataset[name].attrs | {"long_name": words})
    attributes = _attributes(posterior) | {"history": command or "latentpde.reconstruct"}
    as_store = Path(path).suffix == ".zarr" if as_store is None else as_store
    (write_zarr if as_store else write_netcdf)(xr.DataTree(dataset.assign_attrs(attributes)), path)


def open_reconstruction(path: str | Path) -> tuple[Observation, dict[str, Any]]:
    """The readings that a reconstruction was made from, and what `latentpde.reconstruct` was called with."""
    groups = (read_zarr if is_zarr(path) else read_groups)(path, ("/", GROUP))
    if GROUP not in groups:
        raise DataError(f"{path} holds no group {GROUP}: it is not a reconstruction, or of an older version")
    try:
        settings = json.loads(groups["/"].attrs.get("settings", "{}"))
    except (TypeError, ValueError) as error:
        raise DataError(f"the attribute settings of {path} is not JSON: {error}") from error
    return readings_from_dataset(groups[GROUP]), settings


def _coefficients(posterior: PDEPosterior) -> xr.Dataset:
    """Draws of the coefficients, and their mean and spread, which may come from more draws than are kept."""
    import xarray as xr

    draws, spread = posterior.coefficients, posterior.coefficient_spread()
    values = {
        "coefficient_mean": (("case", "coefficient"), posterior.spread_thetas.mean(1), "posterior means"),
        "coefficient_std": (("case", "coefficient"), spread.std, "posterior standard deviations"),
        "coefficient_quantiles": (("case", "quantile", "coefficient"), spread.quantiles, "quantiles"),
    }
    found = xr.Dataset(
        {
            name: (axes, array.numpy(), {"long_name": f"{words} of the coefficients of the PDE"})
            for name, (axes, array, words) in values.items()
        },
        coords={"coefficient": draws["coefficient"]},
    )
    found = found if posterior.observation.batched else found.isel(case=0)
    return found.assign(coefficients=draws.assign_attrs(long_name="draws of the coefficients of the PDE"))


def _diagnostics(posterior: Posterior) -> xr.Dataset:
    """What the method reports about itself: arrays are per case, with axes of their own behind; the rest is of all
    cases."""
    import xarray as xr

    found = {}
    for name, value in posterior.diagnostics.items():
        array = np.asarray(json.dumps(value) if isinstance(value, dict) else value)
        further = [f"{name}_{i}" for i in range(1, array.ndim)]
        if name.startswith("coefficient_") and array.ndim == 2:
            further = ["coefficient"]
        words = {"long_name": f"what the method says of itself: {name.replace('_', ' ')}"}
        variable = xr.Variable(("case", *further)[: array.ndim], array, words)
        found[f"diagnostic_{name}"] = (
            variable if posterior.observation.batched else variable.isel(case=0, missing_dims="ignore")
        )
    return xr.Dataset(found)


def _attributes(posterior: Posterior) -> dict[str, Any]:
    family = {"family": posterior.latent.family.name} if isinstance(posterior, PDEPosterior) else {}
    return {
        "Conventions": "CF-1.11",
        "title": "field reconstructed from sparse readings",
        "source": f"latentpde {latentpde.__version__}, method {posterior.method}",
        "latentpde_version": latentpde.__version__,
        "method": posterior.method,
        "has_spread": int(posterior.has_spread),
        "seed": posterior.settings.get("seed", 0),
        "options": json.dumps(posterior.settings),
        "settings": json.dumps(posterior.call, default=_spelt),
        **family,
    }


def _spelt(value: Any) -> Any:
    """A setting as it is spelt on the command line and in Python."""
    if isinstance(value, Spectrum):
        return value.describe()
    if isinstance(value, Domain):
        return f"y={value.y},x={value.x}"
    return value.tolist() if hasattr(value, "tolist") else str(value)
