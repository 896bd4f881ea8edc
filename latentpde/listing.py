"""What there is to choose from, a line each."""

from __future__ import annotations


def rows(what: str) -> list[dict[str, str]]:
    """``name`` and ``summary`` of each family, regime, mask, method or benchmark."""
    if what == "families":
        from latentpde.pde import families

        return [{"name": f.name, "summary": f"{f.equation}   ({', '.join(f.coefficient_names)})"} for f in families]
    if what == "regimes":
        from latentpde.simulation import regimes

        return [
            {
                "name": r.name,
                "summary": f"{r.family}: "
                + ", ".join(
                    f"{name} in [{low:g}, {high:g}]"
                    for name, (low, high) in zip(r.pde.coefficient_names, r.ranges, strict=True)
                )
                + f"; source {r.source_prior_std:g}; time {r.time:g}",
            }
            for r in regimes
        ]
    if what == "masks":
        from latentpde.simulation import TRAINING_MASKS, masks

        return [
            {"name": name, "summary": "training" if name in TRAINING_MASKS else "evaluation"} for name in masks.names()
        ]
    if what == "benchmarks":
        from latentpde.bench import benchmarks

        return [{"name": benchmark.name, "summary": benchmark.title} for benchmark in benchmarks]
    from latentpde.estimators import methods

    return [{"name": name, "summary": methods.get(name).summary} for name in methods.names()]
