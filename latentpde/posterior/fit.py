r"""Whether a reconstruction fits the readings that it was made from.

The misfit is the mean squared distance of the readings from what the reconstruction predicts of them, in units of their
noise's variance. For the true field :math:`n` times the misfit is a chi-squared variable with :math:`n` degrees of
freedom, for as many readings, so the misfit is about 1. A mean that was fitted to the readings lies closer to them than
the truth does: the check is one-sided, and its probability of a false alarm at most `FALSE_ALARM`. A method that
smooths, or that has not found the field, fails it too, and rightly so.
"""

from __future__ import annotations

from jaxtyping import Complex, Float
from scipy.special import chdtrc
from torch import Tensor

from latentpde.grid import at_points
from latentpde.observation import Observation
from latentpde.operator import cell_averages

FALSE_ALARM = 1e-5  # probability that a right reconstruction fails the check, at most


def is_explained(misfit: float, num_readings: int) -> bool:
    """Whether chance would give a misfit as large at least once in 100,000 cases.

    >>> is_explained(1.1, 50), is_explained(3.0, 50)
    (True, False)
    """
    return bool(chdtrc(num_readings, misfit * num_readings) > FALSE_ALARM)


def fit_warnings(misfit: float, num_readings: int) -> list[str]:
    """What is to be said of a misfit, as a sentence; mostly nothing.

    >>> fit_warnings(1.1, 50)
    []
    """
    if is_explained(misfit, num_readings):
        return []
    return [
        f"The reconstruction does not fit its readings: their misfit is {misfit:.1f} where about 1 is expected. "
        "Either their noise is larger than stated, or the method has not found the field that explains them, or no "
        "field does: another PDE is at work, or the bounds exclude the truth."
    ]


def misfits(observation: Observation, predicted: Float[Tensor, "case time *reading"]) -> Float[Tensor, " case"]:
    """The misfit of each case.

    >>> import torch
    >>> observation = Observation.from_arrays([[[1.0, 2.0], [3.0, float("nan")]]], times=[1.0], noise_std=0.5)
    >>> misfits(observation, torch.tensor([[[[1.0, 2.0], [2.0, 9.0]]]]))  # a third of 2 squared
    tensor([1.3333], dtype=torch.float64)

    Args:
        observation: the readings, with their noise.
        predicted: what a reconstruction predicts of them; where there is no reading it does not count.
    """
    squared = observation.mask * ((observation.values - predicted) / observation.noise_std) ** 2
    return squared.flatten(1).sum(1) / observation.num_readings


def readings_of(
    u_hat: Complex[Tensor, "case time row col"], observation: Observation
) -> Float[Tensor, "case time *reading"]:
    """What an observation would have read of fields: averages over its cells, or values at its sensors.

    >>> import torch
    >>> observation = Observation.from_arrays(torch.zeros(1, 4, 4), times=[1.0], noise_std=0.1)
    >>> readings_of(torch.full((1, 1, 2, 2), 0j), observation).shape
    torch.Size([1, 1, 4, 4])
    """
    if observation.positions is None:
        return cell_averages(u_hat, observation.grid, observation.pooling)
    return at_points(u_hat, observation.positions[:, None], observation.grid.extent, observation.grid.origin)
