// The page: one state, what changes it, and how it is shown.

import { call, Failure, Latest, post } from "./api.js";
import { drawCoefficients, writeEquation } from "./charts.js";
import { DataDialog } from "./data.js";
import { colourAt, draw, fieldOf, range, rootMeanSquare, valueAt } from "./fields.js";
import { placeText, Stage } from "./stage.js";
import { decode, emptyDrawing, encode, History, MOST_SENSORS, onSteps, sceneOf } from "./state.js";
import { fillTexts, number, short, text, withStd } from "./text.js";
import { layersFor, layersOfFrame, seen, viewOfTool } from "./view.js";

const VIEWS = ["mean", "std", "source", "start", "truth", "error"];
const WAIT = 180; // milliseconds of work before the page says that it works
const $ = (id) => document.getElementById(id);

let examples = [];
let opening = null; // the scene to begin with
let state = null;
let history = null;
let picture = null; // the last answer, decoded
let shown = null; // the field on the map, with its limits
let tool = "sensor";
let data = null; // a user's own file, where one is shown
const frames = new Map(); // by time, of the scene as it is

// ---- asking the server

const questions = new Latest(async ({ draft, frame }) => {
  const asked = state;
  const layers = frame ? layersOfFrame(asked) : layersFor(asked, tool === "source");
  const timer = setTimeout(() => ($("busy").hidden = false), WAIT);
  document.body.dataset.asking = "";
  try {
    const answer = await post("api/picture", sceneOf(asked, layers, draft));
    take(answer, frame, asked);
    say(null);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    say(error.message);
  } finally {
    clearTimeout(timer);
    $("busy").hidden = true;
    if (!questions.next) delete document.body.dataset.asking;
  }
});

function take(answer, isFrame, asked) {
  const fields = Object.fromEntries(Object.entries(answer.layers).map(([name, layer]) => [name, fieldOf(layer)]));
  const next = isFrame && picture ? { ...picture, ...answer, fields: { ...picture.fields, ...fields } } : { ...answer, fields };
  if (fields.start) next.startSize = Math.max(...range(fields.start).map(Math.abs));
  if (!isFrame) frames.clear();
  frames.set(frameKey(asked), next);
  picture = next;
  render();
  if (!performance.getEntriesByName("first picture").length) performance.mark("first picture");
  if (!isFrame) $("stage").dataset.pictures = Number($("stage").dataset.pictures ?? 0) + 1;
}

const frameKey = (asked) => `${asked.time} ${asked.truth}`;

function refresh({ draft = false, frame = false } = {}) {
  if (data) return data.showFrame(state.time);
  if (!frame) frames.clear();
  const kept = frame && frames.get(frameKey(state));
  if (kept) {
    picture = kept;
    return render();
  }
  render();
  return questions.put({ draft, frame });
}

// ---- changing the state

// A change that can be undone.
function commit(change) {
  state = { ...state, ...change };
  history.push(state);
  remember();
  refresh();
}

// A change while a hand is still moving: shown at once, and settled later.
function preview(change) {
  state = { ...state, ...change };
  refresh({ draft: true });
}

function settle() {
  commit({});
}

// A change of how to look, which undo leaves alone.
function look(change, how) {
  state = { ...state, ...change };
  history.replace({ ...history.current, ...change });
  remember();
  refresh(how);
}

function remember() {
  if (data) return;
  window.history.replaceState(null, "", encode(state));
  $("undo").disabled = !history.canUndo;
  $("redo").disabled = !history.canRedo;
}

function step(by) {
  if (data) return;
  const { view, time, truth, colours } = state;
  state = { ...history.step(by), view, time, truth, colours };
  remember();
  refresh();
}

const moved = (id, place) => state.sensors.map((sensor) => (sensor.id === id ? { ...sensor, ...place } : sensor));

const act = {
  add(y, x) {
    if (state.sensors.length >= MOST_SENSORS) return announce(text("too_many", { count: MOST_SENSORS }));
    const id = 1 + Math.max(-1, ...state.sensors.map((sensor) => sensor.id));
    if (id > 65535) return announce(text("too_many", { count: 65535 }));
    commit({ sensors: [...state.sensors, { id, y, x }] });
    announce(placeText("sensor_added", { y, x }));
  },
  move(id, y, x) {
    preview({ sensors: moved(id, { y, x }) });
  },
  nudge(id, dy, dx) {
    const sensor = state.sensors.find((other) => other.id === id);
    commit({ sensors: moved(id, { y: onSteps(sensor.y + dy), x: onSteps(sensor.x + dx) }) });
  },
  remove(id) {
    commit({ sensors: state.sensors.filter((sensor) => sensor.id !== id) });
    announce(text("sensor_removed"));
  },
  settle,
  stroke(which, stroke) {
    const drawing = state[which];
    commit({ [which]: { ...drawing, strokes: [...drawing.strokes, stroke].slice(-32) } });
  },
  point(place, isSpoken = false) {
    const words = place && shown ? describePoint(place) : null;
    $("about").textContent = words ?? aboutView();
    if (isSpoken && words) announce(words);
  },
};

// ---- showing it

const onMap = () => (data ? state.view : viewOfTool[tool] ?? state.view);
const aboutView = () => text(`about_${onMap() === "true_source" ? "source" : onMap()}`);

function describePoint(place) {
  const found = valueAt(shown.field, place.y, place.x);
  const where = data ? data.placeText(place) : placeText("place", place);
  if (Number.isNaN(found)) return text("at_excluded", { place: where });
  const hasStd = onMap() === "mean" && picture.fields.std;
  const value = hasStd ? withStd(found, valueAt(picture.fields.std, place.y, place.x)) : short(found);
  return text("at_point", { place: where, value: withUnit(value) });
}

const withUnit = (value) => (data?.unitOf(onMap()) ? `${value} ${data.unitOf(onMap())}` : value);

function render() {
  renderControls();
  if (picture) {
    renderMap();
    renderSmallMaps();
    renderFacts();
    drawCoefficients($("coefficients"), picture.coefficients);
  }
  renderSensors();
}

function renderMap() {
  const next = seen(picture, onMap(), state.colours);
  if (!next) return;
  shown = next;
  const { field, colours, low, high } = shown;
  draw($("map"), field, colours, low, high);
  if (!questions.isBusy || tool === "sensor") stage.clearInk();
  draw($("scale"), { rows: 1, columns: 256, values: Float32Array.from({ length: 256 }, (_, i) => i) }, colours, 0, 255);
  [$("low").textContent, $("high").textContent] = [short(low), withUnit(short(high))];
  const view = text(`view_${onMap() === "true_source" ? "source" : onMap()}`);
  $("map").setAttribute("aria-label", text("map_of", { view, time: timeText(), low: short(low), high: short(high) }));
}

function renderSensors() {
  const values = new Map(picture?.readings.map(({ id, value }) => [id, value]) ?? []);
  const scale = picture && seen(picture, "mean", state.colours);
  const wordsOf = ({ id, y, x, words }, index) => {
    const value = values.get(id);
    const more = { number: index + 1, place: words ?? placeText("place", { y, x }), value: value === undefined ? "" : short(value) };
    return text(value === undefined ? "sensor" : "sensor_reads", more);
  };
  const colour = ({ id }) => (scale && values.has(id) ? colourAt(scale.colours, values.get(id), scale.low, scale.high) : null);
  stage.show(data ? data.result.places : state.sensors, wordsOf, colour);
}

function smallViews() {
  const others = state.truth ? ["mean", "std", "source", "start", "truth", "error"] : ["mean", "std", "source", "start"];
  return others.filter((view) => view !== onMap()).slice(0, state.truth ? 6 : 3);
}

function renderSmallMaps() {
  const views = smallViews().filter((view) => seen(picture, view, state.colours));
  const container = $("small-maps");
  if (container.dataset.views !== views.join()) {
    container.dataset.views = views.join();
    container.replaceChildren(
      ...views.map((view) => {
        const button = document.createElement("button");
        button.className = "small-map";
        button.dataset.view = view;
        button.setAttribute("aria-label", text("show_view", { view: text(`view_${view}`) }));
        const caption = document.createElement("span");
        caption.textContent = text(`view_${view}`);
        button.append(document.createElement("canvas"), caption);
        button.addEventListener("click", () => showView(view));
        return button;
      }),
    );
  }
  for (const button of container.children) {
    const { field, colours, low, high } = seen(picture, button.dataset.view, state.colours);
    draw(button.querySelector("canvas"), field, colours, low, high);
  }
}

function renderFacts() {
  const { scores, fields } = picture;
  const std = fields.std && short(rootMeanSquare(fields.std));
  const facts = [
    data ? [text("readings_count"), data.result.num_readings] : [text("sensors_count"), state.sensors.length],
    [text("typical_std"), data && std ? `${std} ${data.result.unit}` : std],
  ];
  if (scores) facts.push([text("rmse"), short(scores.rmse)], [text("within"), `${Math.round(100 * scores.within_two_std)} %`]);
  $("facts").replaceChildren(
    ...facts.map(([name, value]) => {
      const pair = document.createElement("div");
      const [term, detail] = ["dt", "dd"].map((tag) => document.createElement(tag));
      [term.textContent, detail.textContent] = [name, value];
      pair.append(term, detail);
      return pair;
    }),
  );
  if (picture.notes.length) say(picture.notes.join(" "));
}

const example = () => examples.find(({ regime }) => regime === state.regime);
const isSteady = () => (data ? data.isSteady : example()?.order === 0);
const timeText = () => (data ? data.timeText(state.time) : number(state.time * (example()?.reading_time ?? 1), 3));

function renderControls() {
  for (const button of $("views").children) {
    button.setAttribute("aria-pressed", button.dataset.view === onMap().replace("true_", ""));
    button.hidden = data ? !["mean", "std", "source"].includes(button.dataset.view) : ["truth", "error"].includes(button.dataset.view) && !state.truth;
  }
  for (const button of $("tool").children) button.setAttribute("aria-pressed", button.dataset.value === tool);
  $("about").textContent = aboutView();
  $("timeline").classList.toggle("steady", isSteady());
  for (const id of ["time", "play"]) $(id).disabled = isSteady();
  $("time").value = state.time;
  const phase = Math.abs(state.time - 1) < 1e-9 ? "time_reading" : state.time > 1 ? "time_forecast" : "time_now";
  $("time-now").textContent = isSteady() ? text("time_steady") : data ? timeText() : text(phase, { time: timeText() });
  $("time").setAttribute("aria-valuetext", $("time-now").textContent);
  $("regime").value = state.regime;
  $("seed").value = state.seed;
  $("noise").value = Math.log(state.noise).toFixed(1);
  $("noise-now").textContent = short(state.noise);
  $("resolution").value = state.resolution;
  $("colours").value = state.colours;
  $("truth").checked = state.truth;
  $("clear").disabled = tool === "sensor" ? !state.sensors.length : isPlain(state[tool]);
  $("best").hidden = tool !== "sensor";
  $("brush").hidden = tool === "sensor";
  if (tool !== "sensor") {
    $("blank").checked = state[tool].blank;
    $("blank-text").textContent = text(`blank_${tool}`);
  }
  $("stage-help").textContent = text(data ? "stage_help_data" : tool === "sensor" ? "stage_help" : "stage_help_draw");
  if (!data && example()) writeEquation($("equation"), example().equation);
}

const isPlain = ({ blank, strokes }) => !blank && !strokes.length;

function announce(words) {
  $("said").textContent = words;
}

function say(words) {
  $("note").hidden = !words;
  $("note").textContent = words ?? "";
}

// ---- controls

function showView(view) {
  if (tool !== "sensor") setTool("sensor", false);
  look({ view }, { frame: true });
}

function setTool(next, isAsking = true) {
  tool = next;
  stage.setMode(data ? "fixed" : next);
  if (isAsking) refresh({ frame: next !== "source" });
}

function choices(container, values, chosen, choose) {
  container.replaceChildren(
    ...values.map(([value, key]) => {
      const button = document.createElement("button");
      button.dataset.value = value;
      button.textContent = text(key);
      button.setAttribute("aria-pressed", value === chosen);
      button.addEventListener("click", () => {
        for (const other of container.children) other.setAttribute("aria-pressed", other === button);
        choose(value);
      });
      return button;
    }),
  );
}

function play() {
  const isPlaying = $("play").classList.toggle("playing");
  $("play").setAttribute("aria-label", text(isPlaying ? "pause" : "play"));
  const tick = async () => {
    if (!$("play").classList.contains("playing")) return;
    const limit = Number($("time").max);
    const next = state.time + 0.05 > limit + 1e-9 ? 0 : Math.round(100 * (state.time + 0.05)) / 100;
    await look({ time: next }, { frame: true });
    while (questions.isBusy) await new Promise((resolve) => setTimeout(resolve, 15));
    setTimeout(() => requestAnimationFrame(tick), 60);
  };
  if (isPlaying) tick();
}

async function share() {
  let words = text("shared");
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    words = text("share_failed");
  }
  announce(words);
  $("share").textContent = words;
  setTimeout(() => ($("share").textContent = text("share")), 1800);
}

async function suggest() {
  $("best").disabled = true;
  try {
    const { y, x } = await post("api/suggestion", sceneOf(state, ["mean"], false));
    act.add(onSteps(y), onSteps(x));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    say(error.message);
  } finally {
    $("best").disabled = false;
  }
}

function fillChoices() {
  $("views").replaceChildren(
    ...VIEWS.map((view) => {
      const button = document.createElement("button");
      button.dataset.view = view;
      button.textContent = text(`view_${view}`);
      button.addEventListener("click", () => showView(view));
      return button;
    }),
  );
  choices($("tool"), ["sensor", "start", "source"].map((name) => [name, `tool_${name}`]), tool, setTool);
  choices($("brush-sign"), [[1, "brush_raise"], [-1, "brush_lower"]], 1, (sign) => (stage.brush.height = sign));
  choices($("brush-width"), [[0.04, "brush_thin"], [0.08, "brush_wide"]], 0.04, (width) => (stage.brush.width = width));
  stage.brush = { width: 0.04, height: 1 };
  $("regime").replaceChildren(...examples.map(({ regime }) => new Option(text(`regime_${regime}`), regime)));
  $("colours").replaceChildren(...["auto", "viridis", "cividis"].map((name) => new Option(text(`colours_${name}`), name)));
}

function connect() {
  $("skip").addEventListener("click", () => $("stage").focus());
  $("share").addEventListener("click", share);
  $("undo").addEventListener("click", () => step(-1));
  $("redo").addEventListener("click", () => step(1));
  $("best").addEventListener("click", suggest);
  $("clear").addEventListener("click", () => commit(tool === "sensor" ? { sensors: [] } : { [tool]: emptyDrawing() }));
  $("blank").addEventListener("change", () => commit({ [tool]: { ...state[tool], blank: $("blank").checked } }));
  $("play").addEventListener("click", play);
  $("time").addEventListener("input", () => look({ time: Number($("time").value) }, { frame: true }));
  $("regime").addEventListener("change", () => commit({ regime: $("regime").value }));
  $("seed").addEventListener("change", () => commit({ seed: Math.max(0, Math.min(9999, Math.round(Number($("seed").value) || 0))) }));
  $("another").addEventListener("click", () => commit({ seed: (state.seed + 1) % 10000 }));
  const noise = () => Number(Math.exp(Number($("noise").value)).toPrecision(2));
  $("noise").addEventListener("input", () => preview({ noise: noise() }));
  $("noise").addEventListener("change", () => commit({ noise: noise() }));
  $("resolution").addEventListener("change", () => look({ resolution: Number($("resolution").value) }));
  $("colours").addEventListener("change", () => look({ colours: $("colours").value }, { frame: true }));
  $("truth").addEventListener("change", () => {
    const view = !$("truth").checked && ["truth", "error"].includes(state.view) ? "mean" : state.view;
    look({ truth: $("truth").checked, view });
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.target.matches("input[type=number]")) return;
    const isRedo = event.key.toLowerCase() === "y" || (event.shiftKey && event.key.toLowerCase() === "z");
    if (!isRedo && event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    step(isRedo ? 1 : -1);
  });
  window.addEventListener("hashchange", () => open());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
}

function open() {
  const { state: found, isWhole } = decode(location.hash, examples.map(({ regime }) => regime), opening);
  state = found;
  history = new History(state);
  remember();
  refresh();
  if (!isWhole) announce(text("bad_link"));
}

const stage = new Stage($("stage"), act);

// A user's own file takes the place of the example until it is left.
const dialog = new DataDialog($("data"), {
  enter(shownData) {
    data = shownData;
    document.body.classList.toggle("data", Boolean(data));
    for (const id of ["settings", "tools", "share"]) $(id).hidden = Boolean(data); // no link holds a file
    $("time").toggleAttribute("list", !data);
    if (!data) $("time").setAttribute("list", "reading-time");
    stage.show([], () => "", () => null);
    $("data-panel").hidden = !data;
    setTool("sensor", false);
    if (!data) {
      $("time").max = 2;
      $("stage").style.aspectRatio = "";
      ({ state } = decode(location.hash, examples.map(({ regime }) => regime), opening));
      return refresh();
    }
    $("data-name").textContent = data.name;
    [$("panel-netcdf").href, $("panel-report").href] = [data.netcdf, data.report];
    state = { ...state, view: "mean", time: 1, truth: false };
    $("time").max = 1;
    writeEquation($("equation"), data.equation);
    return refresh();
  },
  show(found) {
    picture = found;
    const [height, width] = [found.fields.mean.rows, found.fields.mean.columns];
    $("stage").style.aspectRatio = `${width} / ${height}`;
    render();
  },
  examples: () => examples,
});
$("leave-data").addEventListener("click", () => dialog.leave());

async function begin() {
  fillTexts(document);
  document.title = text("title");
  try {
    ({ examples, opening } = await call("api/catalogue"));
  } catch (error) {
    return say(error.message);
  }
  fillChoices();
  connect();
  return open();
}

begin();
