"""What is known on walls, against differences in space that know nothing of sines, cosines or a function taken off."""

import numpy as np
import pytest
import torch

from latentpde import Domain
from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.lift import Lift
from latentpde.pde import discretised, get_family

EXTENT = (1.0, 1.4)
DOMAINS = {
    "four values": Domain("dirichlet", "dirichlet", on_y=(1.0, -2.0), on_x=(3.0, 0.5)),
    "one value": Domain("dirichlet", "dirichlet", on_y=(2.0, 2.0), on_x=(2.0, 2.0)),
    "two plates": Domain("dirichlet", "neumann", on_y=(1.0, 3.0)),
    "values and slopes": Domain("dirichlet", "neumann", on_y=(1.0, 3.0), on_x=(2.0, -1.0)),
    "slopes and values": Domain("neumann", "dirichlet", on_y=(2.0, 1.0), on_x=(1.0, 0.0)),
    "slopes": Domain("neumann", "neumann", on_y=(1.0, -1.0), on_x=(0.5, 2.0)),
    "a torus cut once": Domain("periodic", "neumann", on_x=(1.0, -2.0)),
}
POLYNOMIAL = ("one value", "two plates", "slopes", "a torus cut once")


def second_difference(kind, on, num, side):
    """``D`` and ``b`` such that the second derivative at the centres of cells is ``D u + b``."""
    h = side / num
    matrix = (np.eye(num, k=1) + np.eye(num, k=-1) - 2 * np.eye(num)) / h**2
    known = np.zeros(num)
    for end, opposite, value, outwards in ((0, -1, on[0], -1), (-1, 0, on[1], 1)):
        if kind == "periodic":
            matrix[end, opposite] += 1 / h**2
        elif kind == "dirichlet":  # the wall is half a cell away
            matrix[end, end] -= 1 / h**2
            known[end] += 2 * value / h**2
        else:
            matrix[end, end] += 1 / h**2
            known[end] += outwards * value / h
    return matrix, known


def by_differences(domain, num, order, s0, sy, sx, time, start, source):
    """The field of ``d^order u / dt^order + s0 u - sy u_yy - sx u_xx = source`` on cells, exact in time."""
    parts = [
        second_difference(kind, on, num, side)
        for kind, on, side in zip((domain.y, domain.x), (domain.on_y, domain.on_x), EXTENT, strict=True)
    ]
    (ly, vy), (lx, vx) = (np.linalg.eigh(matrix) for matrix, _ in parts)
    rate = s0 - sy * ly[:, None] - sx * lx
    known = source + sy * parts[0][1][:, None] + sx * parts[1][1]
    known, state = (vy.T @ field @ vx for field in (known, start))
    small = np.abs(rate) < 1e-9
    safe = np.where(small, 1.0, rate)
    if order == 0:
        found = known / safe
    elif order == 1:
        found = np.exp(-rate * time) * state + known * np.where(small, time, (1 - np.exp(-rate * time)) / safe)
    else:
        frequency = np.sqrt(safe)
        built_up = np.where(small, time**2 / 2, (1 - np.cos(frequency * time)) / safe)
        found = np.where(small, 1.0, np.cos(frequency * time)) * state + built_up * known
    return vy @ found @ vx.T


def decoded(domain, family, theta, num, time, start):
    middle = torch.tensor(theta, dtype=torch.float64)
    latent = Latent(family, num_modes=0, bounds=torch.stack([middle - 1e-3, middle + 1e-3], -1))
    grid, mirror = Grid((num, num), EXTENT), domain.mirror
    decoder = Decoder(latent, mirror.grid(grid).extent, mirror=mirror, lift=Lift.of(domain, EXTENT))
    z = latent.pack(middle, torch.zeros(0, dtype=torch.float64))
    return decoder.decode(z, torch.from_numpy(start), [time], grid)[0].numpy()


def centres(num):
    return np.meshgrid(*((np.arange(num) + 0.5) / num * side for side in EXTENT), indexing="ij")


EQUATIONS = {
    "heat": ((0.3,), 1, lambda kappa: (0.0, kappa, kappa)),
    "poisson": ((0.7,), 0, lambda kappa: (0.0, kappa, kappa)),
    "time_harmonic": ((1.1, 1.5), 0, lambda c, omega: (-(omega**2), c**2, c**2)),
    "helmholtz": ((0.3, 0.9, 1.7), 0, lambda kx, ky, k: (k**2, ky, kx)),
    "klein_gordon": ((0.8, 0.6, 1.3), 2, lambda cx, cy, m: (m**2, cy**2, cx**2)),
}


@pytest.mark.parametrize("walls", DOMAINS)
@pytest.mark.parametrize("name", EQUATIONS)
def test_fields_are_those_of_differences_as_cells_get_small(name, walls):
    family, (theta, order, terms) = get_family(name), EQUATIONS[name]
    by_name = dict(zip(family.coefficient_names, theta, strict=True))
    domain, time = DOMAINS[walls], 0.4
    try:
        Lift.of(domain, EXTENT).require(family)
    except UsageError:
        has_direction = name in ("helmholtz", "klein_gordon") and walls not in POLYNOMIAL
        assert has_direction or (name == "poisson" and walls in ("slopes", "a torus cut once"))
        return
    arguments = {"helmholtz": ("kappa_x", "kappa_y", "k"), "klein_gordon": ("cx", "cy", "m")}.get(name)
    values = theta if arguments is None else tuple(by_name[a] for a in arguments)
    errors = []
    for num in (24, 72):  # a third of a cell's side, with centres in common
        y, x = centres(num)
        on_lift = Lift.of(domain, EXTENT).on_grid(Grid((num, num), EXTENT)).numpy()
        waves = [
            np.sin(np.pi * along / side) if kind == "dirichlet" else 1 + 0.3 * np.cos(2 * np.pi * along / side)
            for kind, along, side in ((domain.y, y, EXTENT[0]), (domain.x, x, EXTENT[1]))
        ]
        start = waves[0] * waves[1] + (on_lift if order else 0.0)
        if order == 0:
            expected = by_differences(domain, num, 0, *terms(*values), time, 0 * y, start)
        else:
            expected = by_differences(domain, num, order, *terms(*values), time, start, 0 * y)
        found = decoded(domain, family, theta, num, time, start)
        off = found - expected
        if order == 0 and "dirichlet" not in (domain.y, domain.x) and terms(*values)[0] == 0:
            off = off - off.mean()
        coarse = off if num == 24 else off[1::3, 1::3]
        errors.append(np.abs(coarse[3:-3, 3:-3]).max())
    assert errors[1] < 0.004
    assert errors[1] < errors[0] / 3


def test_walls_have_what_is_known_of_them():
    ends = torch.tensor([0.2, 0.5, 0.9]).double()
    for domain in DOMAINS.values():
        lift = Lift.of(domain, EXTENT)
        for axis, (kind, on, side) in enumerate(
            zip((domain.y, domain.x), (domain.on_y, domain.on_x), EXTENT, strict=True)
        ):
            for value, wall, inwards in ((on[0], 0.0, 1.0), (on[1], side, -1.0)):

                def at(place, axis=axis, lift=lift):
                    along = torch.full_like(ends, place)
                    return lift.at(along, ends) if axis == 0 else lift.at(ends, along)

                if kind == "dirichlet":
                    torch.testing.assert_close(at(wall), torch.full_like(ends, value), atol=1e-9, rtol=0)
                if kind == "neumann":
                    slope = inwards * (at(wall + inwards * 1e-6) - at(wall)) / 1e-6
                    torch.testing.assert_close(slope, torch.full_like(ends, value), atol=1e-4, rtol=0)


def test_units_do_not_matter():
    lift = Lift.of(DOMAINS["values and slopes"], EXTENT)
    other = lift.scaled(value=5.0, length=100.0)
    y, x = torch.tensor([0.2, 0.7]).double(), torch.tensor([0.3, 1.2]).double()
    torch.testing.assert_close(other.at(100 * y, 100 * x), 5 * lift.at(y, x))


def test_equations_that_no_known_function_fits_are_refused():
    four, slopes = (Lift.of(DOMAINS[name], EXTENT) for name in ("four values", "slopes"))
    for family in ("klein_gordon", "helmholtz", "screened_poisson"):
        with pytest.raises(UsageError, match="not alike in all directions"):
            four.require(get_family(family))
    with pytest.raises(UsageError, match="not of second order"):
        slopes.require(get_family("fractional_diffusion"))
    with pytest.raises(UsageError, match="what enters must leave"):
        slopes.require(get_family("poisson"))
    with pytest.raises(UsageError, match="not alike in all directions"):
        four.require(discretised(get_family("poisson"), (0.1, 0.1)))
