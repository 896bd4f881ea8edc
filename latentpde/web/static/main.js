// What changes the page: hands on the map, controls, answers of the server.

import { call, Failure, Latest, post } from "./api.js";
import { writeEquation } from "./charts.js";
import { DataDialog } from "./data.js";
import { fieldOf, range } from "./fields.js";
import { $, page } from "./page.js";
import { aboutView, announce, describePoint, Renderer, say } from "./render.js";
import { placeText, Stage } from "./stage.js";
import { decode, emptyDrawing, encode, History, MOST_SENSORS, onSteps, sceneOf } from "./state.js";
import { fillTexts, text } from "./text.js";
import { layersFor, layersOfFrame } from "./view.js";

const VIEWS = ["mean", "std", "source", "start", "truth", "error"];
const WAIT = 180; // milliseconds of work before the page says that it works
const frames = new Map(); // by time, of the scene as it is

// ---- asking the server

const questions = new Latest(async ({ draft, frame }) => {
  const asked = page.state;
  const layers = frame ? layersOfFrame(asked) : layersFor(asked, page.tool === "source");
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
  const next = isFrame && page.picture ? { ...page.picture, ...answer, fields: { ...page.picture.fields, ...fields } } : { ...answer, fields };
  if (fields.start) next.startSize = Math.max(...range(fields.start).map(Math.abs));
  if (!isFrame) frames.clear();
  frames.set(frameKey(asked), next);
  page.picture = next;
  render();
  if (!performance.getEntriesByName("first picture").length) performance.mark("first picture");
  if (!isFrame) $("stage").dataset.pictures = Number($("stage").dataset.pictures ?? 0) + 1;
}

const frameKey = (asked) => `${asked.time} ${asked.truth}`;

function refresh({ draft = false, frame = false } = {}) {
  if (page.data) return page.data.showFrame(page.state.time);
  if (!frame) frames.clear();
  const kept = frame && frames.get(frameKey(page.state));
  if (kept) {
    page.picture = kept;
    return render();
  }
  render();
  return questions.put({ draft, frame });
}

// ---- changing the state

// A change that can be undone.
function commit(change) {
  page.state = { ...page.state, ...change };
  page.history.push(page.state);
  remember();
  refresh();
}

// A change while a hand is still moving: shown at once, and settled later.
function preview(change) {
  page.state = { ...page.state, ...change };
  refresh({ draft: true });
}

function settle() {
  commit({});
}

// A change of how to look, which undo leaves alone.
function look(change, how) {
  page.state = { ...page.state, ...change };
  page.history.replace({ ...page.history.current, ...change });
  remember();
  refresh(how);
}

function remember() {
  if (page.data) return;
  window.history.replaceState(null, "", encode(page.state));
  $("undo").disabled = !page.history.canUndo;
  $("redo").disabled = !page.history.canRedo;
}

function step(by) {
  if (page.data) return;
  const { view, time, truth, colours } = page.state;
  page.state = { ...page.history.step(by), view, time, truth, colours };
  remember();
  refresh();
}

const moved = (id, place) => page.state.sensors.map((sensor) => (sensor.id === id ? { ...sensor, ...place } : sensor));

const act = {
  add(y, x) {
    if (page.state.sensors.length >= MOST_SENSORS) return announce(text("too_many", { count: MOST_SENSORS }));
    const id = 1 + Math.max(-1, ...page.state.sensors.map((sensor) => sensor.id));
    if (id > 65535) return announce(text("too_many", { count: 65535 }));
    commit({ sensors: [...page.state.sensors, { id, y, x }] });
    announce(placeText("sensor_added", { y, x }));
  },
  move(id, y, x) {
    preview({ sensors: moved(id, { y, x }) });
  },
  nudge(id, dy, dx) {
    const sensor = page.state.sensors.find((other) => other.id === id);
    commit({ sensors: moved(id, { y: onSteps(sensor.y + dy), x: onSteps(sensor.x + dx) }) });
  },
  remove(id) {
    commit({ sensors: page.state.sensors.filter((sensor) => sensor.id !== id) });
    announce(text("sensor_removed"));
  },
  settle,
  stroke(which, stroke) {
    const drawing = page.state[which];
    commit({ [which]: { ...drawing, strokes: [...drawing.strokes, stroke].slice(-32) } });
  },
  point(place, isSpoken = false) {
    const words = place && page.shown ? describePoint(place) : null;
    $("about").textContent = words ?? aboutView();
    if (isSpoken && words) announce(words);
  },
};

// ---- controls

function showView(view) {
  if (page.tool !== "sensor") setTool("sensor", false);
  look({ view }, { frame: true });
}

function setTool(next, isAsking = true) {
  page.tool = next;
  stage.setMode(page.data ? "fixed" : next);
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
    const next = page.state.time + 0.05 > limit + 1e-9 ? 0 : Math.round(100 * (page.state.time + 0.05)) / 100;
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
    const { y, x } = await post("api/suggestion", sceneOf(page.state, ["mean"], false));
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
  choices($("tool"), ["sensor", "start", "source"].map((name) => [name, `tool_${name}`]), page.tool, setTool);
  choices($("brush-sign"), [[1, "brush_raise"], [-1, "brush_lower"]], 1, (sign) => (stage.brush.height = sign));
  choices($("brush-width"), [[0.04, "brush_thin"], [0.08, "brush_wide"]], 0.04, (width) => (stage.brush.width = width));
  stage.brush = { width: 0.04, height: 1 };
  $("regime").replaceChildren(...page.examples.map(({ regime }) => new Option(text(`regime_${regime}`), regime)));
  $("colours").replaceChildren(...["auto", "viridis", "cividis"].map((name) => new Option(text(`colours_${name}`), name)));
}

function connect() {
  $("skip").addEventListener("click", () => $("stage").focus());
  $("share").addEventListener("click", share);
  $("undo").addEventListener("click", () => step(-1));
  $("redo").addEventListener("click", () => step(1));
  $("best").addEventListener("click", suggest);
  $("clear").addEventListener("click", () => commit(page.tool === "sensor" ? { sensors: [] } : { [page.tool]: emptyDrawing() }));
  $("blank").addEventListener("change", () => commit({ [page.tool]: { ...page.state[page.tool], blank: $("blank").checked } }));
  $("play").addEventListener("click", play);
  $("time").addEventListener("input", () => look({ time: Number($("time").value) }, { frame: true }));
  $("regime").addEventListener("change", () => commit({ regime: $("regime").value }));
  $("seed").addEventListener("change", () => commit({ seed: Math.max(0, Math.min(9999, Math.round(Number($("seed").value) || 0))) }));
  $("another").addEventListener("click", () => commit({ seed: (page.state.seed + 1) % 10000 }));
  const noise = () => Number(Math.exp(Number($("noise").value)).toPrecision(2));
  $("noise").addEventListener("input", () => preview({ noise: noise() }));
  $("noise").addEventListener("change", () => commit({ noise: noise() }));
  $("resolution").addEventListener("change", () => look({ resolution: Number($("resolution").value) }));
  $("colours").addEventListener("change", () => look({ colours: $("colours").value }, { frame: true }));
  $("truth").addEventListener("change", () => {
    const view = !$("truth").checked && ["truth", "error"].includes(page.state.view) ? "mean" : page.state.view;
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
  const { state: found, isWhole } = decode(location.hash, page.examples.map(({ regime }) => regime), page.opening);
  page.state = found;
  page.history = new History(page.state);
  remember();
  refresh();
  if (!isWhole) announce(text("bad_link"));
}

const stage = new Stage($("stage"), act);
const renderer = new Renderer(stage, showView, () => questions.isBusy);
const render = () => renderer.render();

// A user's own file takes the place of the example until it is left.
const dialog = new DataDialog($("data"), {
  enter(shownData) {
    page.data = shownData;
    document.body.classList.toggle("data", Boolean(page.data));
    for (const id of ["settings", "tools", "share"]) $(id).hidden = Boolean(page.data); // no link holds a file
    $("time").toggleAttribute("list", !page.data);
    if (!page.data) $("time").setAttribute("list", "reading-time");
    stage.show([], () => "", () => null);
    $("data-panel").hidden = !page.data;
    setTool("sensor", false);
    if (!page.data) {
      $("time").max = 2;
      $("stage").style.aspectRatio = "";
      page.state = decode(location.hash, page.examples.map(({ regime }) => regime), page.opening).state;
      return refresh();
    }
    $("data-name").textContent = page.data.name;
    [$("panel-netcdf").href, $("panel-report").href] = [page.data.netcdf, page.data.report];
    page.state = { ...page.state, view: "mean", time: 1, truth: false };
    $("time").max = 1;
    writeEquation($("equation"), page.data.equation);
    return refresh();
  },
  show(found) {
    page.picture = found;
    const [height, width] = [found.fields.mean.rows, found.fields.mean.columns];
    $("stage").style.aspectRatio = `${width} / ${height}`;
    render();
  },
  examples: () => page.examples,
});
$("leave-data").addEventListener("click", () => dialog.leave());

async function begin() {
  fillTexts(document);
  document.title = text("title");
  try {
    Object.assign(page, await call("api/catalogue"));
  } catch (error) {
    return say(error.message);
  }
  fillChoices();
  connect();
  return open();
}

begin();
