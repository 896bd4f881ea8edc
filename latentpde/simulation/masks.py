r"""Which cells of a coarse grid are observed.

A mask of sparsity ``s`` on ``ny x nx`` cells observes exactly ``n = max(1, floor(s ny nx))`` of them. A kind of mask
gives each cell a *score*, and the cells with the ``n`` lowest scores are observed, ties broken at random. So a
kind only says where it would rather look, and the count is exact for all of them.

To add one, decorate its score; its name is the function's::

    @register_mask
    def upper_half(shape, num_observed, *, generator):
        return (np.arange(shape[0])[:, None] < shape[0] / 2) * np.ones(shape)

Lengths are in cells, which are taken to be square. Methods are trained on `TRAINING_MASKS` and
evaluated on `EVALUATION_MASKS` too, whose geometry they have not seen.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from latentpde.errors import UsageError
from latentpde.registry import Registry

TRAINING_MASKS = ("random", "clustered", "line", "corners")
EVALUATION_MASKS = ("grid", "boundary", "radial", "single_patch")

Scores = Float[np.ndarray, "y x"]


@runtime_checkable
class MaskScore(Protocol):
    """A kind of mask: it gives each cell a score, and the cells with the lowest scores are observed.

    It is told how many cells will be observed, so that it can widen with their number.
    """

    __name__: str

    def __call__(self, shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores: ...


masks: Registry[MaskScore] = Registry("mask", "masks")


def register_mask(score: MaskScore) -> MaskScore:
    """Add a kind of mask to `masks` under the function's own name; used as a decorator."""
    return masks.register(score.__name__, score)


def count_observed(shape: tuple[int, int], sparsity: float) -> int:
    """The number of observed cells, ``max(1, floor(sparsity * ny * nx))`` as it is meant in decimals.

    In floating point ``0.29 * 100`` falls a rounding error short of 29, and a bare floor would lose a cell. The slack
    that is added is far above such errors and far below one cell.

    Args:
        shape: ``(ny, nx)`` of the observed grid.
        sparsity: observed fraction of cells, in (0, 1].

    Example:
        >>> count_observed((10, 10), 0.29)
        29
    """
    if not 0 < sparsity <= 1:
        raise UsageError(f"the sparsity is the observed fraction of cells, in (0, 1]; got {sparsity}")
    num_cells = shape[0] * shape[1]
    return min(num_cells, max(1, math.floor(sparsity * num_cells * (1 + 1e-12))))


def draw_mask(
    kind: str, shape: tuple[int, int], sparsity: float, *, generator: np.random.Generator
) -> Bool[np.ndarray, "y x"]:
    """Draw a mask, true where a cell is observed.

    Args:
        kind: a name in `masks`.
        shape: ``(ny, nx)`` of the observed grid.
        sparsity: observed fraction of cells, in (0, 1]; `count_observed` makes it a count.
        generator: where all random numbers come from.

    Example:
        >>> mask = draw_mask("boundary", (4, 6), 16 / 24, generator=np.random.default_rng(0))
        >>> print(mask.astype(int))
        [[1 1 1 1 1 1]
         [1 0 0 0 0 1]
         [1 0 0 0 0 1]
         [1 1 1 1 1 1]]
    """
    score = masks.get(kind)
    if len(shape) != 2 or any(n != int(n) or n < 1 for n in shape):
        raise UsageError(f"a mask needs a shape (ny, nx) of positive whole numbers, got {shape}")
    num_observed = count_observed(shape, sparsity)
    scores = score(shape, num_observed, generator=generator)
    if scores.shape != tuple(shape):
        raise UsageError(f"mask {kind!r} must score every cell of {tuple(shape)}, but scored {scores.shape}")
    order = np.lexsort((generator.random(scores.size), scores.ravel()))
    mask = np.zeros(scores.size, dtype=bool)
    mask[order[:num_observed]] = True
    return mask.reshape(shape)


@register_mask
def random(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    """Cells at random: every set of them is equally likely."""
    return np.zeros(shape)


@register_mask
def clustered(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    r"""Gaussian clusters around a few centres, periodic at the edges.

    The lowest values of :math:`\log E - \log w` with :math:`E` exponential are draws without replacement
    with weights :math:`w`. Clusters widen with the count so that each is about half full at its centre.
    """
    num_clusters = generator.integers(2, 6)
    variance = num_observed / (np.pi * num_clusters)
    y, x = _cell_centres(shape)
    centres_y, centres_x = (generator.uniform(0, length, (num_clusters, 1, 1)) for length in shape)
    squared = _wrapped(y - centres_y, shape[0]) ** 2 + _wrapped(x - centres_x, shape[1]) ** 2
    return np.log(generator.exponential(size=shape)) + squared.min(axis=0) / (2 * variance)


@register_mask
def line(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    """Straight transects across the domain, one after the other until there are cells enough.

    Each is one cell wide and passes through a cell that no earlier one did, so every one adds something;
    the last is filled outwards from that cell, and may be a piece of a transect.
    """
    y, x = _cell_centres(shape)
    scores = np.full(shape, np.inf)
    num_lines = 0
    while np.isfinite(scores).sum() < num_observed:
        row, col = generator.choice(np.argwhere(np.isinf(scores)))
        dy, dx = y - y[row], x - x[:, col]
        # Aiming at a random point, not in a random direction, seldom cuts a mere corner off.
        towards_y, towards_x = generator.uniform(0, shape)
        angle = math.atan2(towards_y - y[row, 0], towards_x - x[0, col])
        across = np.abs(dx * math.sin(angle) - dy * math.cos(angle))
        along = np.abs(dx * math.cos(angle) + dy * math.sin(angle))
        # Half a cell along the flatter axis: one cell per row or column, whatever the angle.
        on_line = across <= 0.5 * max(abs(math.sin(angle)), abs(math.cos(angle)))
        scores = np.minimum(scores, np.where(on_line, num_lines + along / math.hypot(*shape), np.inf))
        num_lines += 1
    return scores


@register_mask
def corners(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    """Quarter discs at the four corners, their radii in random proportion."""
    y, x = _cell_centres(shape)
    distances = [np.hypot(y - corner_y, x - corner_x) for corner_y in (0, shape[0]) for corner_x in (0, shape[1])]
    return np.min(np.stack(distances) / generator.uniform(0.5, 1.5, (4, 1, 1)), axis=0)


@register_mask
def grid(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    """A regular lattice at a random offset, a few of its points dropped when the count is not a product."""

    def unevenness(num_rows: int) -> float:
        num_cols = math.ceil(num_observed / num_rows)
        anisotropy = math.log(shape[0] * num_cols / (shape[1] * num_rows))
        return abs(anisotropy) + math.log(num_rows * num_cols / num_observed)

    fewest_rows = math.ceil(num_observed / shape[1])
    num_rows = min(range(fewest_rows, min(shape[0], num_observed) + 1), key=unevenness)
    num_cols = math.ceil(num_observed / num_rows)
    scores = np.ones(shape)
    # Flooring an arithmetic sequence keeps all gaps within one cell of each other: no bunching.
    rows, cols = (
        (np.arange(num) * length + generator.integers(length)) // num
        for num, length in zip((num_rows, num_cols), shape, strict=True)
    )
    scores[np.ix_(rows, cols)] = 0
    return scores


@register_mask
def boundary(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    """The outermost ring of cells, then the next; random cells of the last ring needed."""
    y, x = _cell_centres(shape)
    return np.minimum(np.minimum(y, shape[0] - y), np.minimum(x, shape[1] - x))


@register_mask
def radial(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    """Evenly turned spokes, one cell wide, from the centre to the edge.

    At least six, and as many as the count needs; multiples of the golden ratio then order the cells of each,
    so that a spoke with too few is dotted evenly over its whole length.
    """
    y, x = _cell_centres(shape)
    dy, dx = y - shape[0] / 2, x - shape[1] / 2
    num_spokes = max(6, math.ceil(num_observed / (0.5 * math.sqrt(shape[0] * shape[1]))))
    sector = 2 * np.pi / num_spokes
    angle, start = np.arctan2(dy, dx), generator.uniform(0, sector)
    off_angle = _wrapped(angle - start, sector)
    spoke = angle - off_angle
    across = np.hypot(dy, dx) * np.abs(np.sin(off_angle))
    on_spoke = across <= 0.5 * np.maximum(np.abs(np.sin(spoke)), np.abs(np.cos(spoke)))
    ring = np.floor(np.maximum(np.abs(dy), np.abs(dx)))
    golden_ratio = (math.sqrt(5) - 1) / 2
    order = (golden_ratio * ring + np.round((spoke - start) / sector) / num_spokes) % 1
    return np.where(on_spoke, order, 1 + across)


@register_mask
def single_patch(shape: tuple[int, int], num_observed: int, *, generator: np.random.Generator) -> Scores:
    """One block, as near to a square as fits, anywhere in the domain; only its last row may be incomplete."""
    width = min(shape[1], math.ceil(num_observed / min(shape[0], math.ceil(math.sqrt(num_observed)))))
    height = math.ceil(num_observed / width)
    top, left = generator.integers(0, (shape[0] - height + 1, shape[1] - width + 1))
    scores = np.full(shape, np.inf)
    scores[top : top + height, left : left + width] = np.arange(height * width).reshape(height, width)
    return scores


def _cell_centres(shape: tuple[int, int]) -> tuple[Float[np.ndarray, "y 1"], Float[np.ndarray, "1 x"]]:
    """Coordinates ``y`` and ``x`` of the cells' centres, in cells."""
    return np.arange(shape[0])[:, None] + 0.5, np.arange(shape[1])[None, :] + 0.5


def _wrapped(difference: Float[np.ndarray, "*any"], period: float | int) -> Float[np.ndarray, "*any"]:
    """The signed difference of least size between points of a circle whose circumference is ``period``."""
    return (difference + period / 2) % period - period / 2
