"""The maintainer's tools: they use what is public, and their searches keep what they tried."""

import ast
import importlib
import json
import sys
from pathlib import Path

import pytest

from latentpde.training.config import TrainingConfig
from latentpde.training.data import load_or_simulate

TOOLS = Path(__file__).parents[2] / "tools"
SCRIPTS = sorted(TOOLS.glob("*.py"))


@pytest.fixture
def tool(monkeypatch):
    """Imports a tool by its name, and forgets it afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(TOOLS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (TOOLS / f"{name}.py").is_file():
            del sys.modules[name]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_no_tool_reaches_into_private_names(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            assert own, f"{path.name}:{node.lineno} uses {node.attr}"
        if isinstance(node, ast.ImportFrom):
            private = [alias.name for alias in node.names if alias.name.startswith("_")]
            assert not private, f"{path.name} imports {private}"


def test_a_search_keeps_its_trials_and_goes_on(tmp_path, tool):
    tuning, seen = tool("tuning"), []

    def evaluate(settings, names):
        seen.append((dict(settings), tuple(names)))
        return {name: 1 + abs(settings["a"] - 2) + abs(settings["b"] - 1) for name in names}

    def found(names, header):
        trials = tuning.Trials(tmp_path / "t.json", header, evaluate)
        return tuning.search(trials, {"b": 0}, [{"a": (1, 2, 3)}, {"b": (0, 1)}], names)

    assert found(["diffusion"], {"num": 1})["settings"] == {"a": 2, "b": 1}
    assert [settings for settings, _ in seen] == [*({"b": 0, "a": a} for a in (1, 2, 3)), {"b": 1, "a": 2}]
    record = json.loads((tmp_path / "t.json").read_text())
    assert record["num"] == 1
    assert len(record["trials"]) == 4
    seen.clear()
    found(["diffusion", "advection"], {"num": 1})
    assert {names for _, names in seen} == {("advection",)}, "what is known is not run again"
    seen.clear()
    found(["diffusion"], {"num": 2})
    assert len(seen) == 4, "other cases are other trials"


def test_the_best_trial_has_the_lowest_geometric_mean(tool):
    best = tool("tuning").best
    trials = [{"rmse": {"a": 1.0, "b": 1.0}}, {"rmse": {"a": 0.1, "b": 2.0}}, {"rmse": {"a": 0.01}}]
    assert best(trials, ("a", "b")) is trials[1]
    assert best(trials, ("a",)) is trials[2]


def test_winners_go_to_the_benchmark(tmp_path, tool, monkeypatch):
    tune = tool("tune")
    small = tune.Search("kriging", 1, ({"num_lags": (6, 12)},), regimes=("diffusion", "helmholtz"))
    monkeypatch.setitem(tune.SEARCHES, "kriging", small)
    (tmp_path / "tuned.json").write_text('{"pinn": {}}')
    tune.main(["kriging", "--output", str(tmp_path / "out"), "--package", str(tmp_path)])
    tuned = json.loads((tmp_path / "tuned.json").read_text())
    assert tuned.keys() == {"pinn", "kriging"}
    assert tuned["kriging"].keys() == {"advection_diffusion", "helmholtz"}
    record = json.loads((tmp_path / "out" / "kriging.json").read_text())
    assert record["best"]["helmholtz"]["settings"] == tuned["kriging"]["helmholtz"]
    assert record["rmse_of_zero"].keys() == {"diffusion", "helmholtz"}


def test_the_benchmark_uses_what_the_searches_found(tool):
    tune = tool("tune")
    tuned = json.loads((tune.PACKAGE / "tuned.json").read_text())
    for name, families in tuned.items():
        best = json.loads((tune.RESULTS / f"{name}.json").read_text())["best"]
        assert {family: best[family]["settings"] for family in families} == families, name
    branches = json.loads((tune.PACKAGE / "branches.json").read_text())["validation_rmse"]
    for trial in json.loads((tune.RESULTS / "branch.json").read_text())["trials"]:
        branch = trial["settings"]["method"]
        assert trial["rmse"] == {regime: errors[branch] for regime, errors in branches.items()}


def test_a_training_is_recorded_as_far_as_it_came(tmp_path, tool):
    """Thinned, with the last epoch kept; stages that have not begun are left out."""
    folder = tmp_path / "helmholtz-paper"
    (folder / "encoder").mkdir(parents=True)
    rows = [{"epoch": i, "loss": 1 / i, "validation": {"loss": 2 / i}, "seconds": 36.0} for i in range(1, 252)]
    (folder / "encoder" / "log.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows) + '{"epoch": 252, "lo'
    )
    tool("record_training").main([str(folder), "--output", str(tmp_path)])
    record = json.loads((tmp_path / "helmholtz-paper.json").read_text())
    assert record.keys() == {"encoder"}
    encoder = record["encoder"]
    assert (encoder["epochs"], encoder["epochs_wanted"], encoder["hours"]) == (251, 400, 2.51)
    assert len(encoder["curve"]) <= 101
    assert encoder["curve"][-1] == {"epoch": 251, "loss": 0.003984, "validation": {"loss": 0.007968}}


def test_a_record_says_what_the_encoders_loss_is_for_other_answers(tmp_path, tool):
    """Readings without noise leave the simulator's latents with their penalty alone, and MAP does better than zero."""
    tables = {
        "data": {"num_per_regime": 2, "num_validation": 3, "shape": [16, 16], "num_modes": 2, "noise_std": 1e-6},
        "encoder": {"epochs": 1, "latent_weight": 0.001},
        "denoiser_map": {"epochs": 1, "map_steps": 60, "map_restarts": 1},
    }
    config = TrainingConfig.model_validate(
        {"family": "advection_diffusion", "regimes": ["advection"], "output": str(tmp_path), **tables}
    )
    data = load_or_simulate(config, "validation")[0]
    losses = tool("record_training").losses_of_answers(config, tmp_path)
    penalty = 0.001 * float(data.units.to_latent(data.units.from_latent(data.z.double())).square().sum(-1).mean())
    assert losses["simulator"] == pytest.approx(penalty, rel=1e-3)
    assert losses["map"] < losses["zero"]
