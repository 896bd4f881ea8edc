"""The JSON interface: scenes give pictures that agree with the library, and the same scene the same picture."""

from base64 import b64decode

import numpy as np
import pytest

from latentpde.grid import Grid
from latentpde.web.models import OPENING, Scene, Sensor
from latentpde.web.scene import FINE, Truth, observe

EVERY_LAYER = ["mean", "std", "source", "source_std", "start", "truth", "true_source"]


def ask(client, **changes):
    answer = client.post("/api/picture", json=OPENING.model_dump(mode="json") | changes)
    assert answer.status_code == 200, answer.text
    return answer.json()


def array(layer):
    return np.frombuffer(b64decode(layer["data"]), "<f4").reshape(layer["shape"])


def test_truth_is_the_simulators():
    """A scene without drawings is the simulated case itself: the same field, from another door."""
    import latentpde as lp

    case = lp.simulate("balanced", num=1, seed=5, observed="point")
    field = Truth(Scene(regime="balanced", seed=5)).field(FINE, 1.0).numpy()
    np.testing.assert_allclose(field, case["truth/field"].values[0], atol=1e-6)


def test_sensors_read_the_truth_with_noise_of_the_size_that_was_asked_for():
    places = [Sensor(id=i, y=(i % 8 + 0.5) / 8, x=(i // 8 + 0.5) / 8) for i in range(60)]
    scene = Scene(regime="helmholtz", noise_std=0.2, sensors=places)
    truth = Truth(scene)
    errors = [
        float(value) - float(truth.field(Grid((8, 8)), 1.0)[i % 8, i // 8])
        for i, value in enumerate(observe(scene, truth).values.flatten())
    ]
    assert 0.13 < np.std(errors) < 0.27
    moved = scene.model_copy(update={"sensors": [places[0].model_copy(update={"y": 0.9})]})
    shift = float(observe(moved, truth).values[0, 0, 0]) - float(observe(scene, truth).values[0, 0, 0])
    at = truth.field(Grid((1280, 1280)), 1.0)
    assert shift == pytest.approx(float(at[1152, 80] - at[80, 80]), abs=0.01)  # the noise moved with the sensor


def test_picture_has_what_was_asked_for_and_narrows_with_readings(client):
    few = ask(client, sensors=[], layers=EVERY_LAYER)
    many = ask(client, layers=EVERY_LAYER)
    assert set(many["layers"]) == set(EVERY_LAYER)
    assert array(many["layers"]["std"]).mean() < 0.3 * array(few["layers"]["std"]).mean()
    assert many["scores"]["rmse"] < 0.3 * few["scores"]["rmse"]
    truth, mean, std = (array(many["layers"][name]) for name in ("truth", "mean", "std"))
    assert many["scores"]["within_two_std"] == pytest.approx((np.abs(truth - mean) <= 2 * std).mean(), abs=1e-3)
    assert [c["name"] for c in many["coefficients"]] == ["cx", "cy", "m"]
    speed = many["coefficients"][0]
    assert abs(np.mean(speed["draws"]) - speed["truth"]) < 4 * np.std(speed["draws"])


def test_the_truth_is_not_told_unless_asked_for(client):
    picture = ask(client)
    assert {c["truth"] for c in picture["coefficients"]} == {None}
    assert picture["scores"] is None


@pytest.mark.slow
def test_the_same_scene_gives_the_same_bits(server):
    """From another process too, which has computed nothing before."""
    import httpx
    from web_server import serving

    pictures = []
    with serving("--workers", "1") as other:
        for address in (server, other):
            with httpx.Client(base_url=address, timeout=60) as client:
                pictures.append(ask(client, time=0.5)["layers"])
    assert pictures[0] == pictures[1]


def test_drawing_changes_start_and_source(client):
    stroke = {"points": [[0.5, 0.3], [0.5, 0.7]], "width": 0.05, "height": 1.0}
    drawing = {"blank": True, "strokes": [stroke]}
    layers = ["start", "true_source"]
    picture = ask(client, regime="helmholtz", start=drawing, source=drawing, layers=layers)
    start, source = (array(picture["layers"][name]) for name in layers)
    assert start[64, 64] == pytest.approx(1.0, abs=0.02)
    assert abs(start[10, 64]) < 1e-3
    assert source[64, 64] > 5 * np.abs(source[10]).max()


def test_suggests_a_place_away_from_the_sensors(client):
    place = client.post("/api/suggestion", json=OPENING.model_dump(mode="json")).json()
    distances = [np.hypot(place["y"] - s.y, place["x"] - s.x) for s in OPENING.sensors]
    assert min(distances) > 0.03


@pytest.mark.parametrize("resolution", [64, pytest.param(256, marks=pytest.mark.slow)])
def test_resolution_is_of_the_same_field(client, resolution):
    picture, other = ask(client), ask(client, resolution=resolution)
    fine, coarse = sorted((array(p["layers"]["mean"]) for p in (picture, other)), key=len, reverse=True)
    pooled = fine.reshape(len(coarse), 2, len(coarse), 2).mean((1, 3))
    assert np.abs(pooled - coarse).max() < 0.1 * np.abs(coarse).max()


def test_describes_itself(client):
    description = client.get("/api/openapi.json").json()
    assert {"/api/catalogue", "/api/picture", "/api/suggestion"} <= set(description["paths"])
    assert client.get("/docs").status_code == 404  # it would load scripts from elsewhere
