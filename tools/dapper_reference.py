"""Make tests/data/dapper_enkf.json: one analysis by DAPPER's EnKF, with everything that went in.

DAPPER brings a whole Jupyter and an old tabulate, so it is no dependency of the tests. In an environment of its own:

    python -m venv /tmp/dapper && /tmp/dapper/bin/pip install dapper==1.7.1
    /tmp/dapper/bin/python tools/dapper_reference.py
"""

import json
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np


def analysis(members, predicted, values, variance, perturbations):
    """DAPPER's classic EnKF; it centres and rescales the perturbations, and subtracts them from the readings."""
    from dapper.da_methods.ensemble import EnKF_analysis
    from dapper.tools.matrices import CovMat

    noise = SimpleNamespace(C=CovMat(variance), sample=lambda num: perturbations[:num])
    return EnKF_analysis(members, predicted, noise, values, "PertObs")


def problem(num_members: int, num_cells: int, num_readings: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    members = rng.standard_normal((num_members, num_cells)) @ rng.standard_normal((num_cells, num_cells))
    variance = rng.uniform(0.1, 2.0, num_readings)
    return {
        "members": members,
        "predicted": members @ rng.standard_normal((num_cells, num_readings)) / 3,
        "values": rng.standard_normal(num_readings),
        "variance": variance,
        "perturbations": rng.standard_normal((num_members, num_readings)) * np.sqrt(variance),
    }


def main(path: Path = Path("tests/data/dapper_enkf.json")) -> None:
    # fewer members than readings, and more: the two ways that an analysis can be solved
    problems = [problem(5, 7, 9, 0), problem(12, 7, 4, 1)]
    record = [{**p, "analysis": analysis(**p)} for p in problems]
    plain = [{name: np.asarray(array).tolist() for name, array in p.items()} for p in record]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"dapper": version("dapper"), "problems": plain}) + "\n")


if __name__ == "__main__":
    main()
