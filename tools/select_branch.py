"""Choose between the paper's two branches on the validation split; writes latentpde/bench/branches.json.

For each regime, RMSE against the true field at 128 x 128, averaged over the four evaluation masks at 5 %, as the paper
does; the test split is not touched. Regimes that the record has already, with as many cases, are not run again. Run
with: python tools/select_branch.py [--num 25] [--regimes helmholtz ...] [--weights FOLDER]
"""

import argparse
import json
from pathlib import Path

import numpy as np

from latentpde.bench.branches import BRANCHES, branch_record
from latentpde.estimators import reconstruct
from latentpde.nn.weights import SHIPPED
from latentpde.scores.metrics import rmse
from latentpde.simulation import EVALUATION_MASKS, PAPER_REGIMES, simulate


def validation_rmse(regime: str, branch: str, num: int, weights: str) -> float:
    """Mean over masks and cases."""
    errors = []
    for mask in EVALUATION_MASKS:
        cases = simulate(regime, num=num, seed=0, split="validation", mask=mask)
        posterior = reconstruct(cases, method=branch, seed=0, weights=weights, show_progress=True)
        errors.append(rmse(posterior.mean().values, cases["truth/field"].values.astype(float)))
    return float(np.mean(errors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num", type=int, default=25, help="cases per regime and mask")
    parser.add_argument("--weights", default=SHIPPED, help="folder of weights")
    parser.add_argument("--regimes", nargs="+", default=list(PAPER_REGIMES))
    parser.add_argument("--output", type=Path, default=Path("latentpde/bench/branches.json"))
    arguments = parser.parse_args()
    known = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    errors = known["validation_rmse"] if known.get("num_per_mask") == arguments.num else {}
    for regime in arguments.regimes:
        if regime in errors:
            continue
        errors[regime] = {b: validation_rmse(regime, b, arguments.num, arguments.weights) for b in BRANCHES}
        print(regime, errors[regime], flush=True)
        record = branch_record(errors, split="validation", seed=0, num_per_mask=arguments.num, masks=EVALUATION_MASKS)
        arguments.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
