"""Makes wrong calls in Python, where no checker of types stands before ours, and prints what each of them raises."""

import json
import os
import sys
import tempfile

import numpy as np
import torch
import xarray as xr

import latentpde as lp
from latentpde.io.netcdf import open_observed
from latentpde.scores.evaluate import evaluate

cases = lp.simulate("balanced", num=2, seed=1, shape=(32, 32), sparsity=0.3, num_modes=2)
observation = lp.Observation.from_dataset(cases)
posterior = lp.reconstruct(observation, method="map", num_steps=2)
good = np.zeros((8, 8)) + np.arange(8.0)
HUGE = 10**30


class Stranger:
    def __repr__(self):
        raise RuntimeError("no words")


def reconstruct(**options):
    return lambda: lp.reconstruct(observation, **{"method": "map", **options})


def from_arrays(values=good, initial=good, **options):
    return lambda: lp.Observation.from_arrays(values, initial, **{"noise_std": 0.1, **options})


def simulate(regime="balanced", **options):
    return lambda: lp.simulate(regime, **{"num": 1, "shape": (32, 32), **options})


def calls():
    for wrong in (
        None,
        5,
        [1.0],
        "no file.nc",
        "",
        good,
        {"observed": good},
        b"cases.nc",
        "a\0b",
        "a" * 300,
        Stranger(),
    ):
        yield f"reconstruct {type(wrong).__name__}", lambda wrong=wrong: lp.reconstruct(wrong)
    for name, values in {
        "family": (5, "foo", "", ["balanced"], b"balanced"),
        "method": (5, "foo", "", None, ["map"], "a" * 5000),
        "num_draws": (0, -1, 1.5, "a", None, HUGE, True, [3], np.nan),
        "seed": (-1, 2**32, HUGE, 1.5, "a", None, np.inf),
        "bounds": (5, "abc", [1.0], torch.zeros(2), torch.zeros(3, 2), {"foo": (0.0, 1.0)}, {5: (0.0, 1.0)}),
        "source_prior_std": (0, -1.0, "a", np.nan, np.inf, 5e-324, 1e300, [0.1]),
        "num_modes": (-1, 1.5, "a", HUGE, [2], np.nan),
        "num_steps": (0, "a", None, HUGE, 1.5),
        "foo": (1,),
    }.items():
        for value in values:
            yield f"reconstruct({name}={value!r})"[:70], reconstruct(**{name: value})
    for pair in (5, (1.0,), (2.0, 1.0), ("a", "b"), (0.0, np.inf), "ab", None):
        yield f"reconstruct(bounds of {pair!r})", reconstruct(bounds={"kappa": pair})
    for name, values in {
        "values": ("abc", None, 5, [["a"]], np.zeros((0, 8, 8)), good[:1] * np.nan, good + 1j, np.full((8, 8), np.inf)),
        "initial": ("abc", 5, [["a"]], good[:4], good * np.nan),
        "noise_std": ("a", 0.0, -1.0, np.nan, 5e-324, 1e300, good[:4], [0.1, 0.2]),
        "times": ("a", (), [-1.0], [np.nan], [1e300], [[1.0]], 5j),
        "mask": ("a", good[:4], np.zeros((8, 8), bool)),
        "positions": ("a", [[1.0]], good),
        "observed": ("foo", 5),
        "pooling": (0, -2, 1.5, "a", HUGE),
    }.items():
        for value in values:
            label = f"from_arrays({name}={type(value).__name__} {value!r})"[:70]
            yield label, from_arrays(**{name: value})
    for name, values in {
        "regime": (5, "foo", None, ["balanced"]),
        "num": (0, -1, "a", 1.5, None, HUGE),
        "seed": (-1, "a", 1.5, HUGE, 2**32),
        "shape": (5, "ab", (0, 0), (33, 33), (32,), (32, 32, 32), (1.5, 2), None, (HUGE, HUGE), (10**6, 10**6)),
        "pooling": (0, "a", 1.5, 3, HUGE),
        "extent": (5, (0.0, 1.0), ("a", "b"), (np.nan, 1.0)),
        "times": ("a", (), (-1.0,), (np.nan,), (1e300,), 5),
        "noise_std": ("a", 0, np.nan, 1e300),
        "sparsity": ("a", 0.0, 2.0, np.nan),
        "mask": (5, "foo"),
        "split": (5, "foo"),
        "observed": (5, "foo"),
        "num_modes": (-1, "a", HUGE),
    }.items():
        for value in values:
            yield f"simulate({name}={value!r})"[:70], simulate(**{name: value})
    for wrong in ("ab", 5, None, (0, 4), (1.5, 2), (4,), (HUGE, 4), ("a", "b")):
        yield f"Grid({wrong!r})", lambda wrong=wrong: lp.Grid(wrong)
    for wrong in ("ab", 5, None, (0.0, 4.0), (4.0,), ("a", "b"), (np.nan, 1.0), (1e300, 1.0)):
        yield f"Grid(extent={wrong!r})", lambda wrong=wrong: lp.Grid((4, 4), extent=wrong)
    for wrong in (0, -1, 1.5, "a", HUGE, [8], (8,), (0, 8), np.nan, 10**6):
        yield f"mean(resolution={wrong!r})", lambda wrong=wrong: posterior.mean(resolution=wrong)
    for wrong in ("a", [], [-1.0], [np.nan], [1e300], 5):
        yield f"mean(times={wrong!r})", lambda wrong=wrong: posterior.mean(resolution=8, times=wrong)
    for wrong in (5, -1, "a", 1.5):  # None is all cases
        yield f"report(case={wrong!r})", lambda wrong=wrong: posterior.report("r.html", case=wrong)
    for wrong in ("no/such/r.html", ".", "a" * 300, "a\0b"):
        yield f"report({wrong[:12]!r})", lambda wrong=wrong: posterior.report(wrong)
        yield f"to_netcdf({wrong[:12]!r})", lambda wrong=wrong: posterior.to_netcdf(wrong, 8)
    for wrong in ("no.nc", ".", "a" * 300, "a\0b", ""):
        yield f"open_cases({wrong[:12]!r})", lambda wrong=wrong: lp.open_cases(wrong)
        yield f"open_observed({wrong[:12]!r})", lambda wrong=wrong: open_observed(wrong)
    yield "evaluate without a mean", lambda: evaluate(xr.Dataset(), cases)
    yield "evaluate without a truth", lambda: evaluate(posterior.summary(8), xr.DataTree())


def raised(call) -> str:
    try:
        call()
    except lp.LatentPDEError as error:
        return f"{type(error).__name__}: {error}"
    except BaseException as error:
        return f"not ours, {type(error).__name__}: {error}"
    return "nothing"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        json.dump([[name, raised(call)] for name, call in calls()] + [["left", str(os.listdir())]], sys.stdout)
