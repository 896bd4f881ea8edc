"""An observation in a notebook: shown by itself, plotted, and as a table for xarray and pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentpde.observation.listing import Listing

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class InNotebook:
    """What `latentpde.Observation`, which is the ``self`` of these, has for people at a keyboard."""

    def plot(self: Any, case: int = 0) -> Figure:
        """Draw the readings, and the initial state where there is one.

        Args:
            case: its number, from 0.
        """
        from latentpde.report.fields import plot_observation

        return plot_observation(self, case)

    def _repr_html_(self: Any) -> str:
        from latentpde.report.notebook import observation_html

        return observation_html(self)

    def to_xarray(self: Any, case: int = 0) -> xr.Dataset:
        """The readings of a case as a long table, on the axis ``reading``, in the user's coordinates and dates;
        ``.to_dataframe()`` makes a pandas table of it.

        Args:
            case: its number, from 0.
        """
        return Listing.of(self, case).to_frame(self.frame).rename_axis("reading").to_xarray()
