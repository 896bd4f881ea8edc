"""The same posterior means by plain dense algebra in numpy, as anybody would write it: to compare numbers and time."""

from __future__ import annotations

import time

import numpy as np

from latentpde.bench.rivals.fields import SIZE, SPACING, Layout


def dense_means(layout: Layout, least: float) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Means of right-hand side and solution, and the seconds that the layout took and each field beyond.

    Args:
        layout: the readings.
        least: noise where there is none, as a share of the standard deviation of what is read.
    """
    values, index, reads_a, noise = layout.readings(least)
    start = time.perf_counter()
    n, inside = np.arange(SIZE), np.arange(1, SIZE - 1)
    amplitude = 3 / (np.pi**2 * (n[:, None] ** 2 + n**2) + 9)
    amplitude[0, 0] = 0.0
    cosines = np.cos(np.pi * np.outer(n + 0.5, n) / SIZE) * np.where(n == 0, 1, np.sqrt(2))
    sines = np.zeros((SIZE, SIZE - 2))
    sines[1:-1] = np.sin(np.pi * np.outer(inside, inside) * SPACING) * np.sqrt(2 * SPACING)
    eigenvalues = (2 / SPACING * np.sin(np.pi * inside * SPACING / 2)) ** 2
    inverse = 1 / (layout.equation.shift - eigenvalues[:, None] - eigenvalues)
    mixed = sines.T @ cosines
    row, col = np.divmod(index, SIZE)
    of_a = cosines[row[reads_a]][:, :, None] * cosines[col[reads_a]][:, None, :]
    of_u = (sines[row[~reads_a]][:, :, None] * inverse * sines[col[~reads_a]][:, None, :]) @ mixed
    of_u = mixed.T @ of_u
    matrix = np.concatenate([of_u, of_a]).reshape(len(index), -1) * amplitude.ravel()
    factor = np.linalg.cholesky(matrix @ matrix.T + np.diag(noise**2))
    means, seconds = [], [time.perf_counter() - start]
    for own in values:
        start = time.perf_counter()
        dual = np.linalg.solve(factor.T, np.linalg.solve(factor, own))
        coefficients = amplitude * (dual @ matrix).reshape(SIZE, SIZE)
        a = cosines @ coefficients @ cosines.T
        u = sines @ (inverse * (mixed @ coefficients @ mixed.T)) @ sines.T
        means.append((a, u))
        seconds.append(time.perf_counter() - start)
    a, u = (np.stack([mean[i] for mean in means]) for i in (0, 1))
    if layout.equation.zero_edge:
        a[:, [0, -1]] = a[:, :, [0, -1]] = 0.0
    return a, u, seconds[0] + seconds[1], float(np.mean(seconds[2:] or seconds[1:]))
