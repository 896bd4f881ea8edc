"""What every stage of the learned methods is worth, and what each kind of training latents is; not in the paper."""

from __future__ import annotations

from typing import Any, ClassVar

from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.branches import BRANCHES
from latentpde.bench.jobs import Job
from latentpde.bench.rows import Row, row, with_options
from latentpde.bench.store import failures
from latentpde.bench.tables import NONE, Frame, Table, mean_over_regimes, number
from latentpde.bench.variants import TARGET


class Stages(Benchmark):
    """Learned methods with and without each stage, beside those that do not diffuse."""

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
            for target, base in (
                (some.method.removesuffix("_diffusion"), row(some.name + TARGET[some.method])),
                ("true", some),
            ):
                found += [
                    with_options(base, name=f"{some.name}, {target}, {label}", **options)
                    for label, options in self.physics.items()
                ]
            if some.method == "enc_diffusion":
                name = f"{some.name}, true, from noise alone"
                found.append(with_options(some, name=name, start="noise", **self.physics["alone"]))
        return found

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(self.variants(plan), plan.regimes)

    def show(self, plan: Plan) -> Items:
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
