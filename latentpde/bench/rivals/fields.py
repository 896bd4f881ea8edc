r"""Fields as DiffusionPDE makes them (Huang et al. 2024, ``dataset_generation/static`` of its repository).

The right-hand side is a Gaussian field on 128 x 128 cells, :math:`a = \sum_k c_k \cos \cos` with orthonormal cosines
and :math:`c_k \sim N(0, [3 N / (\pi^2 |k|^2 + 9)]^2)`, of zero mean. The same numbers are then taken as values on the
nodes of a square whose outer nodes are its walls, and five-point differences are solved there: :math:`\Delta u = a` for
Poisson, :math:`\Delta u + u = a` for Helmholtz, with :math:`u = 0` on the walls; Helmholtz's :math:`a` is set to zero
there too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIZE, NUM_READINGS = 128, 500
SPACING = 1 / (SIZE - 1)


@dataclass(frozen=True)
class Equation:
    """One of the two linear tasks.

    Args:
        name: of the task.
        shift: of the Laplacian: 1 for Helmholtz.
        zero_edge: whether the right-hand side is zero on the walls.
    """

    name: str
    shift: float
    zero_edge: bool

    def fields(self, num: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Right-hand sides and solutions, ``(field, y, x)`` on the nodes.

        >>> a, u = EQUATIONS["helmholtz"].fields(2, np.random.default_rng(0))
        >>> a.shape, float(np.abs(u[:, 0]).max())
        ((2, 128, 128), 0.0)
        """
        from scipy.fft import dstn, idctn, idstn

        n = np.arange(SIZE)
        amplitude = 3 * SIZE / (np.pi**2 * (n[:, None] ** 2 + n**2) + 9)
        amplitude[0, 0] = 0.0
        white = rng.standard_normal((num, SIZE, SIZE))
        a = np.asarray(idctn(amplitude * white, axes=(1, 2), norm="ortho"))
        if self.zero_edge:
            a[:, [0, -1]] = a[:, :, [0, -1]] = 0.0
        eigenvalues = (2 / SPACING * np.sin(np.pi * n[1:-1] * SPACING / 2)) ** 2
        u = np.zeros_like(a)
        symbol = self.shift - eigenvalues[:, None] - eigenvalues
        inside = np.asarray(dstn(a[:, 1:-1, 1:-1], type=1, axes=(1, 2)))
        u[:, 1:-1, 1:-1] = idstn(inside / symbol, type=1, axes=(1, 2))
        return a, u

    def expected_stds(self) -> tuple[float, float]:
        """Root mean squares of right-hand side and solution over all nodes, in expectation.

        >>> a, u = EQUATIONS["poisson"].expected_stds()  # stored with their data: 0.29195 and 0.004175
        >>> round(a, 3), round(u, 5)
        (0.292, 0.00418)
        """
        n, inside = np.arange(SIZE), np.arange(1, SIZE - 1)
        power = (3 / (np.pi**2 * (n[:, None] ** 2 + n**2) + 9)) ** 2
        power[0, 0] = 0.0
        cosines = np.cos(np.pi * np.outer(n + 0.5, n) / SIZE) * np.where(n == 0, 1, np.sqrt(2))
        if self.zero_edge:
            cosines[[0, -1]] = 0.0
        squared = (cosines**2).mean(0)
        sines = np.sin(np.pi * np.outer(inside, inside) * SPACING) * np.sqrt(2 * SPACING)
        eigenvalues = (2 / SPACING * np.sin(np.pi * inside * SPACING / 2)) ** 2
        mixed = (sines.T @ cosines[1:-1]) ** 2
        u = mixed @ power @ mixed.T / (self.shift - eigenvalues[:, None] - eigenvalues) ** 2
        return float(np.sqrt(squared @ power @ squared)), float(np.sqrt(u.sum()) / SIZE)


EQUATIONS = {e.name: e for e in (Equation("poisson", 0.0, False), Equation("helmholtz", 1.0, True))}


@dataclass(frozen=True, eq=False)
class Layout:
    """Fields that were read at the same nodes.

    Args:
        equation: that they solve.
        a, u: the fields, ``(field, y, x)``.
        of_a, of_u: flat indices of the nodes at which either was read; none for the one that is wanted.
        noise: of the readings, as a share of the standard deviation of what was read.
    """

    equation: Equation
    a: np.ndarray
    u: np.ndarray
    of_a: np.ndarray
    of_u: np.ndarray
    noise: float

    @classmethod
    def draw(cls, name: str, direction: str, noise: float, index: int, num: int) -> Layout:
        """A layout of 500 nodes at random, and fields for it. Both equations have the same nodes, and right-hand sides
        of the same random numbers: what a layout happens to miss matters more than which of the two is solved.

        Args:
            name: of the equation.
            direction: ``forward`` reads the right-hand side, ``inverse`` the solution, ``both`` 500 nodes of each.
            noise: as a share of the standard deviation of what is read; the fields do not depend on it.
            index: of the layout.
            num: fields.
        """
        equation, rng = EQUATIONS[name], np.random.default_rng([19, 0, index])
        a, u = equation.fields(num, rng)
        first, second = (rng.choice(SIZE**2, NUM_READINGS, replace=False) for _ in range(2))
        nothing = first[:0]
        return cls(
            equation,
            a,
            u,
            nothing if direction == "inverse" else first,
            nothing if direction == "forward" else second,
            noise,
        )

    def readings(self, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Values ``(field, reading)`` with their noise, flat indices, whether each is of ``a``, and standard deviations
        of the noise, at least a share ``least`` of that of what is read. What is fixed on the walls is left out."""
        rows, cols = np.divmod(np.arange(SIZE**2), SIZE)
        on_wall = (rows % (SIZE - 1) == 0) | (cols % (SIZE - 1) == 0)
        of_a = self.of_a[~on_wall[self.of_a]] if self.equation.zero_edge else self.of_a
        of_u = self.of_u[~on_wall[self.of_u]]
        std_a, std_u = self.equation.expected_stds()
        stds = np.repeat([std_u, std_a], [len(of_u), len(of_a)])
        flat_a, flat_u = (field.reshape(len(field), -1) for field in (self.a, self.u))
        values = np.concatenate([flat_u[:, of_u], flat_a[:, of_a]], axis=1)
        values = values + self.noise * stds * np.random.default_rng(23).standard_normal(values.shape)
        reads_a = np.repeat([False, True], [len(of_u), len(of_a)])
        return values, np.concatenate([of_u, of_a]), reads_a, max(self.noise, least) * stds


def relative_errors(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Of each field, in the norm that the papers use."""
    return np.linalg.norm((found - truth).reshape(len(truth), -1), axis=1) / np.linalg.norm(
        truth.reshape(len(truth), -1), axis=1
    )
