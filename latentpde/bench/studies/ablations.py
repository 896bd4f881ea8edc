"""How much is enough: ensemble sizes, and the paper's ablations of its sampler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Plan, benchmarks, jobs_on
from latentpde.bench.branches import BRANCHES
from latentpde.bench.figures import look
from latentpde.bench.jobs import Job, Solved, measures, short, solve
from latentpde.bench.rows import PAPER, Row, row, with_options
from latentpde.bench.store import failures
from latentpde.bench.studies.sweeps import ADVECTION_DIFFUSION, REPRESENTATIVES
from latentpde.bench.tables import NONE, Frame, Table, mean_over_regimes, number
from latentpde.errors import UsageError
from latentpde.estimators import methods
from latentpde.simulation import PAPER_REGIMES

SIZES = (2, 4, 8, 12, 16, 24, 32, 48, 64)
PILOT = 128
_SUBSETS = 8


def take_subsets(solved: Solved) -> list[dict]:
    """How far the mean of some draws is from the pilot ensemble's, beside what their variance says."""
    if solved.draws is None:
        raise UsageError(f"{solved.job.row.name} has no spread")
    rng, lines = np.random.default_rng(solved.start), []
    for draws in solved.draws:
        apart = {}
        for size in SIZES:
            chosen = [rng.permutation(len(draws))[:size] for _ in range(_SUBSETS)]
            apart[str(size)] = short(np.sqrt(np.mean([(draws[c].mean(0) - draws.mean(0)) ** 2 for c in chosen])))
        lines.append({"apart": apart, "variance": short(draws.var(0, ddof=1).mean())})
    return lines


def take_members(solved: Solved) -> list[dict]:
    """How far the filter's mean with some members is from that with the pilot's number: the gain differs too."""
    apart = {}
    for size in SIZES:
        smaller = with_options(solved.job.row, num_draws=size, num_members=size)
        mean = solve(*(part._replace(job=replace(part.job, row=smaller)) for part in solved.parts)).mean
        apart[str(size)] = np.sqrt(np.mean((mean - solved.mean) ** 2, axis=(-2, -1)))
    assert solved.draws is not None
    return [
        {
            "apart": {size: short(values[i]) for size, values in apart.items()},
            "variance": short(draws.var(0, ddof=1).mean()),
        }
        for i, draws in enumerate(solved.draws)
    ]


measures["subsets"], measures["members"] = take_subsets, take_members


class EnsembleSize(Benchmark):
    name = "ensemble-size"
    title = "how the error of an ensemble mean falls with the number of draws"
    num = 4
    rows = ("exact", "enc_diffusion")
    regimes = REPRESENTATIVES
    measure = "subsets"
    tolerance = 0.02  # the paper's

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on(map(self._pilot, plan.rows), plan.regimes, measure=self.measure)

    def _pilot(self, some: Row) -> Row:
        return with_options(some, num_draws=PILOT)

    def show(self, plan: Plan) -> list:
        table = plan.frame(self.jobs(plan))
        good = table[table["failed"].isna()]
        rows = []
        for (name, regime), some in good.groupby(["row", "regime"], sort=False):
            apart: Frame = pd.DataFrame(list(some["apart"]))
            needed = int(np.ceil(some["variance"].max() / self.tolerance**2))
            rows.append((f"{name}, {regime}", *(number(float(apart[str(k)].mean())) for k in SIZES), str(needed)))
        heads = ("method, regime", *(f"K = {k}" for k in SIZES), f"K for {self.tolerance:g}")
        notes = (
            f"Root mean square distance of the mean of K from that of {PILOT}. Last column: the pilot-ensemble rule "
            "K >= tr(Sigma) / (d eps^2), by the case that needs most. The paper takes K = 12 for draws and 16 members "
            "for the filter.",
        )
        return [Table(self.title, heads, tuple(rows), notes), (f"{self.title}.", self._figure(good))]

    def _figure(self, table: Frame) -> Figure:
        figure = Figure((8.2, 4.2), layout="constrained")
        ax = figure.subplots()
        for place, ((name, regime), some) in enumerate(table.groupby(["row", "regime"], sort=False)):
            colour, marker = look(place)
            apart = pd.DataFrame(list(some["apart"])).mean()
            ax.loglog(SIZES, apart, marker=marker, color=colour, linewidth=1.4, label=f"{name}, {regime}")
            ax.loglog(SIZES, np.sqrt(some["variance"].mean() / np.array(SIZES)), color=colour, linestyle=":")
        ax.axhline(self.tolerance, color="#888888", linestyle="--", linewidth=1)
        ax.set(xlabel="members K", ylabel="distance of the mean from the pilot's")
        ax.set_xticks(SIZES, [str(k) for k in SIZES], minor=False)
        ax.set_xticks([], minor=True)
        ax.grid(color="#dddddd", linewidth=0.6)
        figure.legend(loc="outside right upper", fontsize=8, edgecolor="none", title="dotted: by the variance",
                      title_fontsize=8)  # fmt: skip
        return figure


class EnKFEnsembleSize(EnsembleSize):
    name = "enkf-ensemble-size"
    title = "how the mean of the ensemble Kalman filter settles with its number of members"
    rows = ("enkf-paper",)
    regimes = PAPER_REGIMES
    measure = "members"
    tolerance = 0.01

    def _pilot(self, some: Row) -> Row:
        return with_options(some, num_draws=PILOT, num_members=PILOT)


class Ablation(Benchmark):
    """RMSE over advection-diffusion with one option of the paper's sampler changed."""

    num = 60
    num_settings = 3
    regimes = ADVECTION_DIFFUSION
    option: str
    printed: dict[str, dict]

    def variants(self, plan: Plan) -> list[tuple[Row, float, float]]:
        """Rows, the option's value in each, and the paper's figure; only methods that there are."""
        there = [method for method in self.printed if method in methods]
        wanted = {some.method for some in plan.rows}
        return [
            (with_options(row(method + PAPER), name=f"{method}, {value:g}", **{self.option: value}), value, printed)
            for method in there
            if method in wanted
            for value, printed in self.printed[method].items()
        ]

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on([some for some, _, _ in self.variants(plan)], plan.regimes)

    def show(self, plan: Plan) -> list:
        absent = [method for method in self.printed if method not in methods]
        notes = (f"Not installed here, and so left out: {', '.join(absent)}.",) if absent else ()
        table, rows, first = plan.frame(self.jobs(plan)), [], {}
        notes += failures(table)
        for some, _, printed in self.variants(plan):
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            if good.empty:
                continue
            mean, error = mean_over_regimes(good, "rmse")
            base, base_printed = first.setdefault(some.method, (mean, printed))
            change = [f"{value / reference - 1:+.1%}" for value, reference in ((mean, base), (printed, base_printed))]
            rows.append((some.name, number(mean, error), change[0], number(printed), change[1]))
        return [Table(self.title, (f"method, {self.option}", "RMSE", "change", "paper", "change"), tuple(rows), notes)]


class MapBudget(Ablation):
    name = "ablation-map-budget"
    title = "does LatentPDE-MAP need a converged start?"
    option = "map_steps"
    printed = paper.MAP_BUDGET


class Guidance(Ablation):
    name = "ablation-guidance"
    title = "what guidance by the readings is worth"
    option = "guidance_scale"
    printed = paper.GUIDANCE


class Refinement(Ablation):
    name = "ablation-refinement"
    title = "what the final refinement is worth"
    num = 40
    num_settings = 2
    option = "refinement_weight"
    printed = paper.REFINEMENT


class Stages(Benchmark):
    """Not in the paper: what every stage of its pipeline is worth, and what each kind of training latents is."""

    name = "stages"
    title = "what each stage of the learned methods is worth"
    in_all = False  # twenty variants of the slower methods
    rows = ("exact", "map", "enc", "map_diffusion", "enc_diffusion")
    physics: ClassVar[dict[str, dict[str, Any]]] = {
        "alone": {"guidance_scale": 0.0, "refinement_steps": 0},
        "refined": {"guidance_scale": 0.0},
        "guided": {"refinement_steps": 0},
        "guided, refined": {},
    }

    def variants(self, plan: Plan) -> list[Row]:
        """A method that does not diffuse as it is; one that does with each part of the physics and each target."""
        found = []
        for some in plan.rows:
            if some.method not in BRANCHES:
                found.append(some)
                continue
            for target, base in ((some.method.removesuffix("_diffusion"), row(some.name + PAPER)), ("true", some)):
                found += [
                    with_options(base, name=f"{some.name}, {target}, {label}", **options)
                    for label, options in self.physics.items()
                ]
            if some.method == "enc_diffusion":
                name = f"{some.name}, true, from noise alone"
                found.append(with_options(some, name=name, start="noise", **self.physics["alone"]))
        return found

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on(self.variants(plan), plan.regimes)

    def show(self, plan: Plan) -> list:
        table = plan.frame(self.jobs(plan))
        families = dict.fromkeys(table["pde"])
        return [self._family(family, table[table["pde"] == family], plan) for family in families]

    def _family(self, family: str, table: Frame, plan: Plan) -> Table:
        rows = []
        for some in self.variants(plan):
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            if good.empty:
                continue
            scores = [number(*mean_over_regimes(good, score)) for score in ("rmse", "psd", "crps")]
            cover = NONE if good["coverage90"].isna().all() else number(*mean_over_regimes(good, "coverage90"))
            rows.append((some.name, *scores, cover, number(float(good["seconds"].median()))))
        notes = (
            "Method, latents that its denoiser learnt, and what pulls members to the readings: guidance inside the "
            "chain, refinement after it. Of 12 calibrated members, 90 % intervals cover 85 %.",
            *failures(table),
        )
        heads = ("method", "RMSE", "PSD", "CRPS", "90 %", "seconds")
        return Table(f"{self.title}: {family.replace('_', '-')}", heads, tuple(rows), notes)


for _benchmark in (EnsembleSize(), EnKFEnsembleSize(), MapBudget(), Guidance(), Refinement(), Stages()):
    benchmarks.register(_benchmark.name, _benchmark)
