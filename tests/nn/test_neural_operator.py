"""The neural operator is one function at every resolution, and refuses sizes that make none."""

import pytest
import torch

from latentpde.errors import UsageError
from latentpde.grid import Grid, resample
from latentpde.nn.neural_operator import OPERATOR_PRESETS, NeuralOperator, OperatorSize, SpectralConvolution

SMALL = OperatorSize(
    widths=(8, 16, 16), modes=(8, 6, 4), inner_sides=(16, 8), blocks=1, attention=(1,), groups=4, level_width=8
)


def random_operator(size: OperatorSize, channels: int = 3) -> NeuralOperator:
    """Random values, in the layers that begin at zero too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        operator = NeuralOperator(size, channels)
        for parameter in operator.parameters():
            if not parameter.any():
                torch.nn.init.normal_(parameter, std=0.1)
    return operator.eval().requires_grad_(False)


def band_limited(num: int, modes: int) -> torch.Tensor:
    """Fourier coefficients of some fields, of unit size and modes below ``modes``."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn((num, 3, 2 * modes, modes), dtype=torch.complex64, generator=generator) / modes


@pytest.mark.parametrize("size", [SMALL, OPERATOR_PRESETS["compact"]], ids=["small", "compact"])
def test_one_network_is_one_function_at_every_resolution(size):
    """Relative to the output: to rounding from 64 on; on 32 the nonlinearity folds a little back at the Nyquist."""
    operator, spectrum, level = random_operator(size), band_limited(2, 4), torch.tensor([0.1, -0.4])
    grids = [Grid((n, n)) for n in (32, 64, 128)]
    outputs = [operator(grid.synthesise(spectrum), level) for grid in grids]
    low, middle, high = (resample(output, grid, grids[0]) for output, grid in zip(outputs, grids, strict=True))
    scale = high.std()
    assert (middle - high).abs().max() < 1e-3 * scale
    assert (low - high).square().mean().sqrt() < 0.02 * scale
    # a grid with three times the cells has the coarse cells' centres among its own
    common = operator(Grid((96, 96)).synthesise(spectrum), level)[..., 1::3, 1::3]
    assert (outputs[0] - common).square().mean().sqrt() < 0.02 * scale


def test_it_shifts_with_its_input():
    operator, field, level = random_operator(SMALL), Grid((32, 32)).synthesise(band_limited(1, 4)), torch.tensor([0.2])
    moved = operator(field.roll((4, 8), (-2, -1)), level)  # whole cells of every level
    torch.testing.assert_close(moved, operator(field, level).roll((4, 8), (-2, -1)), atol=1e-4, rtol=1e-4)


def test_it_takes_rectangles_and_grids_smaller_than_its_own():
    operator = random_operator(SMALL)
    for shape in ((12, 20), (32, 48), (8, 8)):
        assert operator(torch.zeros((2, 3, *shape)), torch.zeros(2)).shape == (2, 3, *shape)


def test_a_spectral_convolution_multiplies_modes():
    convolution = SpectralConvolution(2, 3).double()
    grid = Grid((16, 16))
    y, x = (2 * torch.pi * c for c in grid.coordinates())
    kept, dropped = torch.cos(2 * y[:, None] - x), torch.cos(3 * x).expand(16, 16)
    with torch.no_grad():
        matrix = torch.view_as_complex(convolution.weight)[-2, 1]  # mode (-2, 1)
        wave = torch.exp(1j * (-2 * y[:, None] + x))
        found = convolution(torch.stack([kept, dropped])[None])[0]
    torch.testing.assert_close(found, (matrix[0][:, None, None] * wave).real)


@pytest.mark.parametrize(
    "change",
    [
        {"widths": (8, 16)},
        {"groups": 3},
        {"modes": (8, 9, 4)},
        {"blocks": 0},
        {"level_width": 7},
    ],
)
def test_sizes_that_make_no_network_are_refused(change):
    with pytest.raises(UsageError):
        OperatorSize(**{**vars(SMALL), **change})


def test_the_paper_size_has_the_published_number_of_parameters():
    with torch.device("meta"):
        operator = NeuralOperator(OPERATOR_PRESETS["paper"], 3)
    assert sum(p.numel() for p in operator.parameters()) == pytest.approx(184.6e6, rel=0.03)


@pytest.mark.slow
def test_the_paper_size_takes_a_step():
    operator = NeuralOperator(OPERATOR_PRESETS["paper"], 3)
    optimiser = torch.optim.AdamW(operator.parameters(), lr=1e-4)
    fields = Grid((64, 64)).synthesise(band_limited(1, 8))
    losses = []
    for _ in range(2):
        optimiser.zero_grad()
        loss = (operator(fields, torch.zeros(1)) - fields).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[1] < losses[0]
