"""Training learns, can be interrupted anywhere and lose nothing, and refuses what makes no sense."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch
from tiny_training import DATA, DENOISER, config
from tiny_weights import SIZE

from latentpde.errors import DataError, UsageError
from latentpde.io.tensors import read_tensors
from latentpde.nn.weights import build, load_weights
from latentpde.pde import families
from latentpde.training.checkpoints import Checkpoint, checkpoint_paths
from latentpde.training.data import load_or_simulate
from latentpde.training.loop import train
from latentpde.training.run import Run
from latentpde.training.tasks import DenoiserTask, EncoderTask, statistics_of, true_targets

pytestmark = pytest.mark.usefixtures("tiny_preset")


def weights(folder, stage="encoder"):
    return (folder / f"helmholtz-{stage}.safetensors").read_bytes()


def rows(folder, stage="encoder"):
    return [json.loads(line) for line in (folder / stage / "log.jsonl").read_text().splitlines()]


# What comes out


def test_every_stage_is_trained_and_can_be_loaded(tmp_path):
    stages = {"encoder": {"epochs": 2, "batch_size": 4}}
    stages |= {f"denoiser_{kind}": DENOISER for kind in ("enc", "map", "true")}
    written = train(config(tmp_path, **stages))
    assert [path.name for path in written] == [
        "helmholtz-encoder.json",
        "helmholtz-denoiser_enc.json",
        "helmholtz-denoiser_map.json",
        "helmholtz-denoiser_true.json",
    ]
    for stage in stages:
        trained = load_weights(stage, families.get("helmholtz"), tmp_path)
        record = trained.manifest.training
        assert record["epochs"] == stages[stage]["epochs"] == len(rows(tmp_path, stage))
        assert np.isfinite(record["losses"]["loss"])
        assert np.isfinite(record["validation"]["loss"])
        assert (tmp_path / stage / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert trained.manifest.conditions["regimes"] == ["helmholtz"]


def fit(task, role, data, num_steps, epoch_of):
    """Losses of a tiny network over plain Adam steps on all cases at once."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build(role, SIZE, 19, 7)
    adam, history = torch.optim.Adam(network.parameters(), lr=1e-2), []
    for step in range(num_steps):
        adam.zero_grad()
        loss = task.losses(network, data, np.arange(len(data)), epoch_of(step))["loss"]
        loss.backward()
        adam.step()
        history.append(float(loss.detach()))
    return history


def test_an_encoder_overfits_a_handful_of_cases(tmp_path):
    """The same readings again and again, hardly any noise, no penalty."""
    tables = {"data": {**DATA, "noise_std": 0.01, "num_per_regime": 4}, "encoder": {"latent_weight": 0.0}}
    settings = config(tmp_path, family="klein_gordon", **tables)
    (data,) = load_or_simulate(settings, "train")
    history = fit(
        EncoderTask(torch.device("cpu"), SIZE.num_probes, settings.encoder), "encoder", data, 150, lambda step: 0
    )
    assert history[-1] < 0.2 * history[0]


def test_a_denoiser_overfits_a_handful_of_cases(tmp_path):
    """Steps and noise are new each time, the latents the same few: it knows them, and so the noise."""
    settings = config(tmp_path, data={**DATA, "num_per_regime": 4}, denoiser_true={**DENOISER, "obs_weight": 0.0})
    (data,) = load_or_simulate(settings, "train")
    statistics = statistics_of(true_targets, [data])
    task = DenoiserTask(torch.device("cpu"), SIZE.num_probes, settings.denoiser_true, statistics, true_targets, 0, 0)
    history = fit(task, "denoiser_true", data, 250, lambda step: step)
    assert np.mean(history[-25:]) < 0.5 * np.mean(history[:5])


def test_same_seed_same_bits_other_seed_others(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(config(tmp_path / name, seed=seed, encoder={"epochs": 1, "batch_size": 4}))
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


def test_global_randomness_is_left_alone(tmp_path):
    state = torch.get_rng_state()
    train(config(tmp_path, denoiser_true=DENOISER))
    assert torch.equal(torch.get_rng_state(), state)


# Interruption


def interrupted(monkeypatch, settings, after, error=KeyboardInterrupt):
    """Run until the checkpoint of epoch ``after`` is written, and stop there."""
    write = Run.write

    def stop(self, folder):
        write(self, folder)
        if self.epoch == after:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(Run, "write", stop)
        with pytest.raises(error):
            train(settings)


@pytest.mark.parametrize("stage", ["encoder", "denoiser_true", "denoiser_map"])
def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(tmp_path, monkeypatch, stage):
    table = {"epochs": 4, "batch_size": 4} if stage == "encoder" else {**DENOISER, "epochs": 4, "map_reading_sets": 2}
    train(config(tmp_path / "whole", **{stage: table}))
    broken = config(tmp_path / "broken", **{stage: table})
    interrupted(monkeypatch, broken, after=1)
    train(broken, resume=True)
    assert weights(tmp_path / "whole", stage) == weights(tmp_path / "broken", stage)
    plain = [[{**row, "seconds": 0} for row in rows(tmp_path / name, stage)] for name in ("whole", "broken")]
    assert plain[0] == plain[1]


def test_an_epoch_that_was_lost_is_done_again(tmp_path, monkeypatch):
    """Stopped after the log's line and before the checkpoint: the line is not there twice."""
    table = {"epochs": 3, "batch_size": 4}
    train(config(tmp_path / "whole", encoder=table))
    settings, write = config(tmp_path / "broken", encoder=table), Run.write
    with monkeypatch.context() as patch:
        patch.setattr(Run, "write", lambda self, folder: write(self, folder) if self.epoch < 2 else interrupt())
        with pytest.raises(KeyboardInterrupt):
            train(settings)
    assert [row["epoch"] for row in rows(tmp_path / "broken")] == [1, 2]
    train(settings, resume=True)
    assert [row["epoch"] for row in rows(tmp_path / "broken")] == [1, 2, 3]
    assert weights(tmp_path / "whole") == weights(tmp_path / "broken")


def interrupt():
    raise KeyboardInterrupt


def test_a_full_disk_costs_no_checkpoint(tmp_path, monkeypatch):
    table = {"epochs": 3, "batch_size": 4}
    train(config(tmp_path / "whole", encoder=table))
    settings, sync = config(tmp_path / "full", encoder=table), os.fsync

    def full(handle):
        if len(checkpoint_paths(tmp_path / "full" / "encoder")) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(DataError, match=r"No space left on device.*--resume"):
            train(settings)
    folder = tmp_path / "full" / "encoder"
    assert [Checkpoint.read(path).epoch for path in checkpoint_paths(folder)] == [1]
    assert not list(folder.glob(".*part"))
    train(settings, resume=True)
    assert weights(tmp_path / "whole") == weights(tmp_path / "full")


def test_a_damaged_checkpoint_is_passed_over(tmp_path, monkeypatch, capsys):
    table = {"epochs": 4, "batch_size": 4}
    train(config(tmp_path / "whole", encoder=table))
    settings = config(tmp_path / "broken", encoder=table)
    interrupted(monkeypatch, settings, after=3)
    older, newer = checkpoint_paths(tmp_path / "broken" / "encoder")
    newer.write_bytes(newer.read_bytes()[:-100])
    train(settings, resume=True)
    assert "trying the one before" in capsys.readouterr().err
    assert weights(tmp_path / "whole") == weights(tmp_path / "broken")
    assert older.name < newer.name


def test_checkpoints_hold_no_pickle(tmp_path, monkeypatch):
    settings = config(tmp_path, encoder={"epochs": 2, "batch_size": 4})
    interrupted(monkeypatch, settings, after=1)
    (path,) = checkpoint_paths(tmp_path / "encoder")
    tensors, metadata = read_tensors(path)
    assert {name.split(".")[0] for name in tensors} == {"model", "average", "optimiser"}
    assert metadata["epoch"] == "1"
    assert json.loads(metadata["record"])["number of processes"] == 1


def test_finished_stages_are_left_as_they_are(tmp_path):
    settings = config(tmp_path, encoder={"epochs": 1, "batch_size": 4}, denoiser_true=DENOISER)
    train(settings, stage="encoder")
    before = (tmp_path / "helmholtz-encoder.json").stat().st_mtime_ns
    train(settings, resume=True)
    assert (tmp_path / "helmholtz-encoder.json").stat().st_mtime_ns == before
    assert (tmp_path / "helmholtz-denoiser_true.json").exists()


def test_a_run_that_is_stopped_leaves_weights_that_say_so(tmp_path, monkeypatch):
    table = {"epochs": 3, "batch_size": 4}
    settings = config(tmp_path, encoder=table)
    interrupted(monkeypatch, settings, after=2)
    early = load_weights("encoder", families.get("helmholtz"), tmp_path)
    assert early.manifest.training["epochs"] == 2
    checkpoint = Checkpoint.latest(tmp_path / "encoder")
    assert checkpoint is not None
    for name, value in early.network.state_dict().items():  # in half precision
        torch.testing.assert_close(value, checkpoint.tensors[f"average.{name}"], rtol=1e-3, atol=1e-6)
    train(settings, resume=True)
    assert load_weights("encoder", families.get("helmholtz"), tmp_path).manifest.training["epochs"] == 3


def test_a_denoiser_does_not_go_on_with_another_encoder(tmp_path, monkeypatch):
    """Its targets are what the encoder said, so an encoder that was trained further is another one."""
    settings = config(tmp_path, encoder={"epochs": 2, "batch_size": 4}, denoiser_enc=DENOISER)
    interrupted(monkeypatch, settings, after=1)
    write = Run.write
    with monkeypatch.context() as patch:
        patch.setattr(Run, "write", lambda self, folder: write(self, folder) if self.epoch < 2 else interrupt())
        with pytest.raises(KeyboardInterrupt):
            train(settings, stage="denoiser_enc")
    train(settings, resume=True, stage="encoder")
    with pytest.raises(UsageError, match="another encoder"):
        train(settings, resume=True, stage="denoiser_enc")


def test_a_run_is_not_overwritten_and_not_mixed_with_another(tmp_path, monkeypatch):
    interrupted(monkeypatch, config(tmp_path, encoder={"epochs": 2, "batch_size": 4}), after=1)
    with pytest.raises(UsageError, match="--resume"):
        train(config(tmp_path, encoder={"epochs": 2, "batch_size": 4}))
    with pytest.raises(UsageError, match="another encoder"):
        train(config(tmp_path, encoder={"epochs": 2, "batch_size": 2}), resume=True)
    with pytest.raises(DataError, match="other settings"):
        train(config(tmp_path, data={**DATA, "num_per_regime": 9}, encoder={"epochs": 2}), resume=True)


def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path):
    with pytest.raises(DataError, match="learning_rate"):
        train(config(tmp_path, encoder={"epochs": 20, "batch_size": 4, "learning_rate": 1e6, "warmup": 0.0}))


def test_missing_accelerate_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(UsageError, match=r"latentpde\[train\]"):
        train(config(tmp_path, encoder={"epochs": 1}))


def test_an_unknown_stage_is_refused(tmp_path):
    with pytest.raises(UsageError, match="has no stage 'denoiser_map'"):
        train(config(tmp_path, encoder={"epochs": 1}), stage="denoiser_map")


# The command line


def test_the_command_trains_and_resumes(tmp_path, run):
    path = tmp_path / "run.toml"
    path.write_text(
        f'family = "helmholtz"\npreset = "tiny"\noutput = "{tmp_path}/run"\n'
        "[data]\nnum_per_regime = 4\nnum_validation = 2\nshape = [32, 32]\nnum_modes = 2\n[encoder]\nepochs = 1\n"
    )
    code, out, _ = run("train", path)
    assert code == 0
    assert f"weights={tmp_path}/run" in out
    code, _, err = run("train", path)
    assert code == 2
    assert "--resume" in err
    assert run("train", path, "--resume", "-q")[:2] == (0, "")
    assert run("train", path, "--stage", "decoder")[0] == 2
    path.write_text("family = 3")
    assert run("train", path)[0] == 2


# Several processes


@pytest.mark.slow
def test_two_processes_train_together(tmp_path):
    """Through `accelerate launch`, on CPUs: each process sees half of the batches, and one of them writes.

    Its option ``--cpu`` starts one process, whatever ``--num_processes`` says, unless there is MPI; ``--multi_gpu``
    starts them all, and the environment keeps them on CPUs, where they talk through gloo.
    """
    path = tmp_path / "two.toml"
    path.write_text(
        f'family = "helmholtz"\noutput = "{tmp_path}/run"\n'
        "[data]\nnum_per_regime = 8\nnum_validation = 2\nshape = [32, 32]\nnum_modes = 2\n"
        "[encoder]\nepochs = 2\nbatch_size = 2\n"
        "[denoiser_map]\nepochs = 2\nbatch_size = 2\nnum_steps = 20\nmap_steps = 3\nmap_restarts = 1\n"
    )
    program = "from latentpde.cli import main; main()"
    script = tmp_path / "program.py"
    script.write_text(program)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    launch += ["--main_process_port", str(port), str(script), "train", str(path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(launch, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    for stage in ("encoder", "denoiser_map"):
        assert len(rows(tmp_path / "run", stage)) == 2
        load_weights(stage, families.get("helmholtz"), tmp_path / "run")
    checkpoint = Checkpoint.latest(tmp_path / "run" / "encoder")
    assert checkpoint is not None
    assert checkpoint.record["number of processes"] == 2
    (tmp_path / "run" / "helmholtz-encoder.json").unlink()
    with pytest.raises(UsageError, match="number of processes"):
        train(path, resume=True, stage="encoder")
