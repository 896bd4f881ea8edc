"""A posterior in a notebook: shown by itself, plotted, and handed to xarray and ArviZ."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from latentpde.errors import UsageError
from latentpde.frame import Frame
from latentpde.grid import at_points
from latentpde.posterior.places import asked, clock_times
from latentpde.posterior.spread import QUANTILES, std_over_draws

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

MapSize = int | tuple[int, int] | None


class InNotebook:
    """What `latentpde.Posterior`, which is the ``self`` of these, has for people at a keyboard."""

    def plot(self: Any, case: int = 0, times: Any = None, resolution: MapSize = None) -> Figure:
        """Draw mean and standard deviation at one or several times, with the stations, in the user's coordinates.

        Args:
            case: its number, from 0.
            times: numbers on the user's clock, or dates; by default the last one that was observed.
            resolution: as that of `mean`.
        """
        from latentpde.report.notebook import plot_posterior

        return plot_posterior(self, case, clock_times(self.observation, times), resolution)

    def _repr_html_(self: Any) -> str:
        from latentpde.report.notebook import posterior_html

        return posterior_html(self)

    def to_xarray(self: Any, times: Any = None, resolution: MapSize = None) -> xr.Dataset:
        """Mean, standard deviation and quantiles at any times, in the user's coordinates, dates and units.

        `summary` has these at the last time, with the source, the coefficients and the diagnostics.

        Args:
            times: numbers on the user's clock, dates, or text such as ``"2026-05-01T06"``; by default all that were
                observed.
            resolution: as that of `mean`.
        """
        from latentpde.io.users import in_users_frame

        observation = self.observation
        when = observation.distinct_times.numpy() if times is None else clock_times(observation, times)
        wanted: dict[str, Any] = {"resolution": resolution, "times": when.tolist()}
        dataset = self.mean(**wanted).to_dataset(name="mean")
        dataset["std"] = self.std(**wanted)
        dataset["quantiles"] = self.quantiles(QUANTILES, **wanted)
        return dataset if observation.frame is None else in_users_frame(dataset, observation.frame)

    def sel(self: Any, *, time: Any = None, resolution: MapSize = None, **places: Any) -> xr.Dataset:
        """The field where and when the user says, by the names of the user's axes.

        >>> import latentpde as lp
        >>> posterior = lp.reconstruct(lp.simulate("diffusion", num=1), method="map", num_steps=5)
        >>> posterior.sel(time=0.1, y=0.3, x=[0.2, 0.4])["mean"].dims
        ('case', 'x')

        Args:
            time: a number on the user's clock, a date, or text such as ``"2026-05-01T06"``; several as a list. By
                default the last one that was observed.
            resolution: of the map, where no place is given.
            places: both coordinates by the names of the user's axes, such as ``lat=53.1, lon=4.2``: the field itself is
                evaluated there. Lists give the places of a grid of them. Without any, the whole map.
        """
        frame = self.observation.frame or Frame()
        names = (frame.y.name, frame.x.name)
        if not places:
            found = self.to_xarray(clock_times(self.observation, time), resolution)
            alone = time is None or isinstance(time, str) or np.ndim(time) == 0
            return found.isel({frame.time_name: 0}) if alone and frame.time_name in found.dims else found
        if set(places) != set(names):
            raise UsageError(f"give both coordinates, {names[0]}= and {names[1]}=, or none; got {', '.join(places)}")
        y, x = (np.atleast_1d(np.asarray(places[name], dtype=float)) for name in names)
        when = clock_times(self.observation, time)
        grid = [axis.ravel() for axis in np.meshgrid(when, y, x, indexing="ij")]
        found = self.at(np.stack(grid[1:], axis=-1), grid[0])
        found = found.drop_vars([name for name in found.coords if "point" in found[name].dims])
        axes = {frame.time_name: frame.times_to_user(when), names[0]: y, names[1]: x}
        shaped = _unstacked(found, axes)
        asked_for = {frame.time_name: time, **places}
        alone = [name for name, value in asked_for.items() if np.ndim(value) == 0]
        return shaped.isel(dict.fromkeys(alone, 0))

    def at(self: Any, points: Any, times: Any = None) -> xr.Dataset:
        """The field at any places and times: mean, standard deviation and draws.

        Args:
            points: ``(y, x)`` of each place, in the user's coordinates, with axes ``(point, 2)``; for geographical data
                latitude and longitude.
            times: of each of them, or one for all: numbers on the user's clock, or dates; by default the last one that
                was observed.
        """
        import xarray as xr

        wanted = asked(self.observation, points, times)
        with torch.no_grad():
            parts = [self.at_places(case, wanted.points, wanted.times) for case in range(self.observation.num_cases)]
        mean, std, draws = (np.stack([part[i].numpy() for part in parts]) for i in range(3))
        variables = {
            "mean": (("case", "point"), mean),
            "std": (("case", "point"), std),
            "draws": (("case", "draw", "point"), draws),
        }
        found = xr.Dataset(variables, coords=wanted.coordinates)
        return found if self.observation.batched else found.isel(case=0)

    def at_places(
        self: Any, case: int, points: torch.Tensor, times: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean, standard deviation and draws of one case at places of the plane, each with its PDE time."""
        grid, one = self.grid(), slice(case, case + 1)
        draws = torch.empty((self.num_draws, len(points)), dtype=torch.float64)
        mean = torch.empty(len(points), dtype=torch.float64)
        for time in times.unique():
            here = times == time
            fields, middle = self.fields(one, grid, time[None])[0, :, 0], self.means(one, grid, time[None])[0, 0]
            for values, into in ((fields, draws), (middle, mean)):
                into[..., here] = at_points(grid.analyse(values), points[here], grid.extent, grid.origin)
        return mean, std_over_draws(draws[None])[0], draws

    def to_arviz(self: Any, case: int = 0) -> Any:
        """An ``arviz.InferenceData`` of one case, so that ArviZ's plots and tables work.

        The group ``posterior`` has the draws of the coefficients, of what else was inferred, and of what they predict
        for the readings; ``observed_data`` has the readings. Draws are independent, so there is one chain.

        Args:
            case: its number, from 0.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of its next version, at every import
                import arviz
        except ImportError as error:
            raise UsageError('to_arviz needs ArviZ; install it with: pip install "latentpde[arviz]"') from error
        self.observation.require_case(case)
        mask = self.observation.mask[case]
        thetas = self.coefficients_of(case)
        with torch.no_grad():
            predicted = self.reading_draws(slice(case, case + 1))[0][:, mask].numpy()
        posterior = {name: values[None] for name, values in {**thetas, **self.levels_of(case)}.items()}
        return arviz.from_dict(
            posterior=posterior or None,
            posterior_predictive={"reading": predicted[None]},
            observed_data={"reading": self.observation.values[case][mask].numpy()},
        )

    def coefficients_of(self, case: int) -> dict[str, np.ndarray]:
        """Draws of the PDE's coefficients by name; nothing where the method knows no PDE."""
        return {}


def _unstacked(found: xr.Dataset, axes: dict[str, np.ndarray]) -> xr.Dataset:
    """The axis ``point`` as several."""
    import xarray as xr

    shape = [len(values) for values in axes.values()]
    variables: dict[str, Any] = {}
    for name, array in found.data_vars.items():
        others = [dim for dim in array.dims if dim != "point"]
        values = array.transpose(*others, "point").values
        variables[str(name)] = ((*others, *axes), values.reshape(*values.shape[:-1], *shape))
    return xr.Dataset(variables, coords=axes)
