"""Settings in words: what can be written is read back as the same, and what cannot be meant is refused, unevaluated."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import latentpde as lp
from latentpde.settings import Settings
from latentpde.spectra import Spectrum

positive = st.floats(1e-6, 1e6)
levels = st.none() | positive | st.tuples(positive, positive).map(lambda pair: tuple(sorted(pair)))
spectra = (
    st.builds(lp.Matern, levels, levels, st.floats(0.1, 10))
    | st.builds(lp.PowerLaw, levels, levels)
    | st.builds(lp.WhiteBand, st.integers(0, 1000), levels)
)
edges = st.sampled_from(["periodic", "open"])


@given(spectra)
def test_a_spectrum_is_read_as_it_is_written(spectrum):
    assert Spectrum.parse(spectrum.describe()) == spectrum
    assert Spectrum.parse(f" lp.{spectrum!r} ") == spectrum


@given(edges, edges)
def test_a_domain_is_read_as_it_is_written(y, x):
    domain = lp.Domain(y, x)
    assert lp.Domain.parse(domain.describe()) == domain == lp.Domain.parse(f" x = {x} , y={y}")


@given(
    spectra,
    spectra,
    edges,
    st.dictionaries(st.sampled_from(["vx", "kappa"]), st.tuples(positive, positive), min_size=1),
)
def test_settings_are_read_as_they_are_written(initial, source, edge, bounds):
    said = Settings.of(initial=initial, source=source, domain=edge, bounds=bounds, trend="linear", noise_std=0.25)
    assert Settings.of(**said.texts()) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Matern(",
        "Matern()()",
        "Matern(std=__import__('os').system('false'))",
        "Matern(std=open('x'))",
        "Matern(std=1e400)",
        "Matern(std='1')",
        "Matern(std=(1, 2, 3))",
        "Matern(std=(2, 1))",
        "Matern(std=-1)",
        "Matern(std=True)",
        "Matern(1, 2, 3, 4)",
        "Matern(1, std=2)",
        "Matern(**{'std': 1})",
        "Matern(sdt=1)",
        "Gauss()",
        "lp.spectra.Matern()",
        "[" * 400,
        "WhiteBand(1.5)",
        "WhiteBand(True)",
        "Matern(smoothness=(1, 2))",
    ],
)
def test_what_is_no_spectrum_is_refused_with_an_example(text):
    with pytest.raises(lp.UsageError, match=r"Matern|PowerLaw|number"):
        Spectrum.parse(text)


@pytest.mark.parametrize("text", ["", "closed", "y=open,y=open", "z=open", "y:open", "open,periodic", "y=", 5])
def test_what_is_no_domain_is_refused_with_an_example(text):
    with pytest.raises(lp.UsageError, match="such as y=open,x=periodic"):
        lp.Domain.parse(text)


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": "kappa=1"},
        {"bounds": "kappa=1:2,kappa=1:2"},
        {"fixed": "kappa=1:2"},
        {"gaussian": "kappa"},
        {"trend": "quadratic"},
        {"noise_std": -1.0},
        {"initial": 3},
        {"source": "nothing"},
    ],
)
def test_wrong_settings_name_themselves(given):
    with pytest.raises(lp.UsageError):
        Settings.of(**given)


def test_what_the_call_says_wins_coefficient_by_coefficient():
    call, data = Settings.of(bounds={"vx": (0, 1)}), Settings.of(bounds={"vx": (2, 3), "vy": (4, 5)}, trend="linear")
    assert call.over(data).bounds == {"vx": (0.0, 1.0), "vy": (4.0, 5.0)}
    assert call.over(data).trend == "linear"


def test_lengths_of_priors_may_have_units():
    rng = np.random.default_rng(0)
    x, y, t = 1000 * rng.random(10), 1000 * rng.random(10), np.repeat([0.0, 1.0], 5)
    table = pd.DataFrame({"x (m)": x, "y (m)": y, "t (h)": t, "value": np.sin(x / 300)})
    quick = {"noise_std": 0.1, "num_modes": 0, "sweep": 16, "target": 4, "num_draws": 2, "num_spread_draws": 2}
    results = [
        lp.reconstruct(lp.read(table), "heat", initial=initial, **quick).mean(8).values
        for initial in (lp.Matern(1.0, 300.0), lp.Matern(1.0, "0.3 km"), "Matern(1.0, '300 m')")
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    with pytest.raises(lp.UsageError, match="'3 h'"):
        lp.reconstruct(lp.read(table), "heat", initial=lp.Matern(1.0, "3 h"), **quick)
    with pytest.raises(lp.UsageError, match="no unit that is known"):
        lp.reconstruct(lp.read(table.rename(columns=lambda c: c[0])), "heat", initial=lp.Matern(1.0, "3 km"), **quick)
