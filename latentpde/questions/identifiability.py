r"""What is known: how much the readings narrowed each parameter, and which combinations of them alone.

The information gained of a parameter is the divergence of its posterior from the uniform prior between its bounds,
:math:`\int p \log_2 (p / \pi)`, in bits: one bit halves the interval. It is taken from the spacings of quantiles
(Vasicek 1976). Positive parameters that are nearly proportional in their logarithms are known by a combination alone,
such as their product. Modes are groups of samples with gaps between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from latentpde.errors import UsageError
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.estimators.exact.samples import ParameterSamples
from latentpde.posterior import Posterior
from latentpde.questions.mixture import of_one_family

_NUM_SPACINGS, _NUM_POINTS = 32, 600
_TIED = 0.95  # correlation of logarithms from which two parameters are known together alone
_LOOSE = 0.05  # spread of a logarithm below which a parameter is known anyway
_GAP, _NEIGHBOUR = 1.35, 10  # of modes, in distances to a sample's own tenth neighbour: tails are sparse, and no modes
_LEAST_WEIGHT = 0.02
_POWERS = (1 / 3, 0.5, 1.0, 2.0, 3.0)
_FEW_BITS = 0.5  # of a parameter that the readings tell next to nothing of


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What the readings of one case tell of the parameters.

    >>> import latentpde as lp
    >>> cases = lp.simulate("klein_gordon", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5)
    >>> known = lp.identifiability(lp.reconstruct(cases, "klein_gordon"))
    >>> known.names, bool(known.bits.min() > 0), len(known.mode_weights) >= 1
    (('cx', 'cy', 'm'), True, True)

    Args:
        samples: of the parameters, in the user's units.
        bits: that were gained of each.
        correlations: between them; levels in their logarithms.
        combinations: sentences on what is known of several together alone.
        mode_weights: of each mode, the heaviest first.
        mode_of_sample: number of the mode of each sample.
        mode_means: of the parameters in each mode.
        posterior, case: what it was made of.
    """

    samples: ParameterSamples
    bits: Float[np.ndarray, " parameter"]
    correlations: Float[np.ndarray, "parameter parameter2"]
    combinations: tuple[str, ...]
    mode_weights: Float[np.ndarray, " mode"]
    mode_of_sample: Int[np.ndarray, " sample"]
    mode_means: Float[np.ndarray, "mode parameter"]
    posterior: ExactPosterior
    case: int

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters that are inferred."""
        return self.samples.names

    def mode_field(self, mode: int, resolution: int | None = None) -> Any:
        """The mean of the field in one mode.

        Args:
            mode: its number, from 0, the heaviest first.
            resolution: as that of `latentpde.Posterior.mean`.
        """
        if not 0 <= mode < len(self.mode_weights):
            raise UsageError(f"there is no mode {mode}; the modes are 0 to {len(self.mode_weights) - 1}")
        nodes = self.posterior.latent.theta(self.posterior.mean_z[self.case]).numpy()
        coefficients = [self.posterior.latent.family.coefficient_names.index(n) for n in self.names if n in self._own]
        columns = [i for i, name in enumerate(self.names) if name in self._own]
        scale = np.ptp(self.samples.bounds[columns], axis=1)
        apart = (nodes[:, None, coefficients] - self.samples.values[:, columns]) / scale
        nearest = (apart**2).sum(-1).argmin(1)
        chosen = self.mode_of_sample[nearest] == mode
        if not chosen.any():
            raise UsageError(f"mode {mode} has too little weight for a field of its own")
        return self.posterior.of_nodes(self.case, chosen).mean(resolution)

    @property
    def _own(self) -> tuple[str, ...]:
        return self.posterior.latent.family.coefficient_names

    def to_text(self) -> str:
        """What is known, as lines."""
        lines = ["What the readings tell of each parameter, in bits (one bit halves its interval):"]
        for name, bits in zip(self.names, self.bits, strict=True):
            lines.append(f"  {name}: {bits:.1f}" + (" (next to nothing)" if bits < _FEW_BITS else ""))
        lines += self.combinations
        if len(self.mode_weights) > 1:
            lines.append(f"There are {len(self.mode_weights)} modes:")
            for weight, mean in zip(self.mode_weights, self.mode_means, strict=True):
                values = ", ".join(f"{name} {value:.3g}" for name, value in zip(self.names, mean, strict=True))
                lines.append(f"  weight {weight:.2f}: {values}")
        return "\n".join(lines)


def identifiability(posterior: Posterior, case: int = 0) -> Knowledge:
    """What the readings tell of coefficients and levels.

    Args:
        posterior: by the method ``exact``.
        case: its number, from 0.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("diffusion", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5)
        >>> print(lp.identifiability(lp.reconstruct(cases)).to_text().splitlines()[0])
        What the readings tell of each parameter, in bits (one bit halves its interval):
    """
    posterior = of_one_family(posterior, "what is known")
    posterior.observation.require_case(case)
    samples = posterior.samples[case]
    if not samples.names:
        raise UsageError("all coefficients are fixed, and nothing else is inferred")
    unit = _on_unit_box(samples)
    modes, weights = _modes(unit, samples.weights)
    means = np.stack([np.average(samples.values[modes == m], axis=0, weights=samples.weights[modes == m])
                      for m in range(len(weights))])  # fmt: skip
    return Knowledge(
        samples=samples,
        bits=np.array([_bits(column, samples.weights) for column in unit.T]),
        correlations=_correlations(unit, samples.weights),
        combinations=tuple(_combinations(samples)),
        mode_weights=weights,
        mode_of_sample=modes,
        mode_means=means,
        posterior=posterior,
        case=case,
    )


def parameter_samples(posterior: Posterior, case: int = 0) -> ParameterSamples | None:
    """Samples of the parameters that the method ``exact`` inferred, which `identifiability` looks at; ``None`` where
    there are none."""
    found = posterior.samples[case] if isinstance(posterior, ExactPosterior) else None
    return found if found is not None and found.names else None


def _on_unit_box(samples: ParameterSamples) -> Float[np.ndarray, "sample parameter"]:
    values, bounds = samples.values.copy(), samples.bounds.copy()
    values[:, samples.logarithmic] = np.log(values[:, samples.logarithmic])
    bounds[samples.logarithmic] = np.log(bounds[samples.logarithmic])
    return (values - bounds[:, 0]) / np.ptp(bounds, axis=1)


def _bits(values: Float[np.ndarray, " sample"], weights: Float[np.ndarray, " sample"]) -> float:
    """Divergence from the uniform distribution on the unit interval."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) - weights[order] / 2
    levels = np.linspace(0.5 / _NUM_POINTS, 1 - 0.5 / _NUM_POINTS, _NUM_SPACINGS + 1)
    quantiles = np.interp(levels, cumulative, values[order])
    spacings = np.maximum(np.diff(quantiles), 1e-300) / np.diff(levels)
    return max(0.0, float(-np.mean(np.log2(spacings))))


def _correlations(unit: np.ndarray, weights: np.ndarray) -> np.ndarray:
    centred = unit - weights @ unit
    covariance = (weights[:, None] * centred).T @ centred
    std = np.sqrt(np.maximum(covariance.diagonal(), 1e-300))
    return covariance / std[:, None] / std


def _combinations(samples: ParameterSamples) -> list[str]:
    """Pairs of positive parameters of which a product of powers alone is known."""
    found = []
    positive = [i for i in range(len(samples.names)) if samples.values[:, i].min() > 0]
    for place, i in enumerate(positive):
        for j in positive[place + 1 :]:
            logs = np.log(samples.values[:, [i, j]])
            centred = logs - samples.weights @ logs
            covariance = (samples.weights[:, None] * centred).T @ centred
            std = np.sqrt(covariance.diagonal())
            if std.min() < _LOOSE or abs(covariance[0, 1]) < _TIED * std.prod():
                continue
            power = -math.copysign(std[0] / std[1], covariance[0, 1])  # the combination i j^power stays
            nearest = min(_POWERS, key=lambda p: abs(math.log(p / abs(power))))
            size = nearest if abs(math.log(nearest / abs(power))) < 0.15 else abs(power)
            found.append(_said(samples.names[i], samples.names[j], math.copysign(size, power)))
    return found


def _said(first: str, second: str, power: float) -> str:
    """A combination in words.

    >>> _said("c", "d", -2.0)
    'Only the ratio c / d^2 is known, not c and d by themselves.'
    >>> _said("c", "d", -0.5)
    'Only the ratio c^2 / d is known, not c and d by themselves.'
    """
    size = abs(power)
    left = first if size >= 1 else f"{first}^{1 / size:.2g}"
    right = second if size <= 1 else f"{second}^{size:.2g}"
    what = f"product {left} {right}" if power > 0 else f"ratio {left} / {right}"
    return f"Only the {what} is known, not {first} and {second} by themselves."


def _modes(unit: np.ndarray, weights: np.ndarray) -> tuple[Int[np.ndarray, " sample"], Float[np.ndarray, " mode"]]:
    """The mode of each sample, and the weights of the modes: samples are of one mode where a chain of near ones leads
    from one to the other, near being as samples are thereabouts."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    ticks = (np.arange(_NUM_POINTS) + 0.5) / _NUM_POINTS
    index = np.unique(np.searchsorted(np.cumsum(weights), ticks).clip(max=len(weights) - 1))
    points = unit[index]
    tree = KDTree(points)
    labels = np.zeros(len(points), dtype=int)
    if len(points) > _NEIGHBOUR:
        reach = _GAP * tree.query(points, _NEIGHBOUR + 1)[0][:, -1]
        near = tree.query_ball_point(points, reach)
        links = np.repeat(np.arange(len(points)), [len(one) for one in near]), np.concatenate(near).astype(int)
        graph = coo_array((np.ones(len(links[0])), links), shape=(len(points), len(points)))
        labels = connected_components(graph, directed=False)[1]
    of_sample = labels[tree.query(unit)[1]]
    total = np.bincount(of_sample, weights=weights, minlength=int(labels.max()) + 1)
    heavy = np.flatnonzero(total >= max(_LEAST_WEIGHT, 0.0))
    heavy = heavy if len(heavy) else np.array([int(total.argmax())])
    keep = np.isin(labels, heavy)
    of_sample = labels[keep][KDTree(points[keep]).query(unit)[1]]
    total = np.bincount(of_sample, weights=weights, minlength=len(total))
    order = heavy[np.argsort(-total[heavy])]
    number = np.zeros(len(total), dtype=int)
    number[order] = np.arange(len(order))
    return number[of_sample], total[order]
