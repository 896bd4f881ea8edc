"""
How sure are the coefficients?
==============================

Readings leave the coefficients of an equation open to some degree, and not one by one: very
different coefficients, or coefficients that change together, may explain the same readings. The
draws of the posterior show it.
"""

import numpy as np
from matplotlib.figure import Figure

import latentpde as lp


def describe(label, posterior):
    """One line: mean and standard deviation of each coefficient."""
    draws = posterior.coefficients.isel(case=0).to_series().unstack("draw")
    parts = [f"{name} {row.mean():6.2f} ± {row.std():.2f}" for name, row in draws.iterrows()]
    print(f"{label:<12}", ", ".join(parts))


def scatter(path, posteriors, true, a, b):
    """One point for each draw, and a cross where the truth is."""
    figure = Figure(figsize=(4.6, 3.8), layout="constrained")
    ax = figure.subplots()
    for (label, posterior), marker in zip(posteriors.items(), "ox", strict=False):
        draws = posterior.coefficients.isel(case=0)
        ax.scatter(draws.sel(coefficient=a), draws.sel(coefficient=b), s=14, marker=marker, alpha=0.5, label=label)
    ax.plot(true.sel(coefficient=a), true.sel(coefficient=b), "k+", markersize=16, label="true")
    ax.set(xlabel=a, ylabel=b)
    ax.legend()
    figure.savefig(path, dpi=110)


# %%
# Several answers
# ---------------
# A tracer drifts on a periodic square and is read once, at time 0.25, on 3 % of the cells. A
# velocity that takes it once around the square in that time gives the same field as no velocity at
# all: velocities that differ by 4 cannot be told apart. The draws fall into groups, and mean and
# standard deviation alone would hide that. Readings at a second time leave one group.
setting = {"num": 1, "seed": 2, "mask": "random", "sparsity": 0.03}
once = lp.simulate("advection", **setting)
twice = lp.simulate("advection", times=(0.1, 0.25), **setting)
posteriors = {
    "one time": lp.reconstruct(once, num_draws=200),
    "two times": lp.reconstruct(twice, num_draws=200),
}
for label, posterior in posteriors.items():
    describe(label, posterior)
scatter("coefficients-groups.png", posteriors, once["truth/coefficients"].isel(case=0), "vx", "vy")

# %%
# Coefficients that go together
# -----------------------------
# In the telegraph equation a strong damping ``d`` makes waves of speed ``c`` spread like heat with
# a diffusivity of ``c**2 / d``. That is what the readings fix; ``c`` and ``d`` by themselves they
# leave open, along a line.
damped = lp.simulate("telegraph", **setting)
true = damped["truth/coefficients"].isel(case=0)
free = lp.reconstruct(damped, num_draws=200)
describe("both unknown", free)
draws = free.coefficients.isel(case=0)
print(f"correlation of c and d: {np.corrcoef(draws.T.values)[0, 1]:.2f}")

# %%
# A coefficient that you know need not be found: ``fixed`` gives its value. What you know roughly is
# a prior: ``gaussian`` gives a mean and a standard deviation. Either narrows the other coefficient
# too.
d = float(true.sel(coefficient="d"))
rough = lp.reconstruct(damped, num_draws=200, gaussian={"d": (d, 1.0)})
describe("d roughly", rough)
describe("d known", lp.reconstruct(damped, num_draws=200, fixed={"d": d}))
scatter("coefficients-line.png", {"both unknown": free, "d roughly known": rough}, true, "c", "d")

# %%
# Intervals
# ---------
# Quantiles of the draws are intervals.
for label, posterior in (("both unknown", free), ("d roughly", rough)):
    low, high = np.quantile(posterior.coefficients.isel(case=0).sel(coefficient="c"), [0.05, 0.95])
    print(f"{label:<12} c lies between {low:.2f} and {high:.2f} with a probability of 90 %")
