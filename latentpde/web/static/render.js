// How what the page holds is shown.

import { drawCoefficients, writeEquation } from "./charts.js";
import { colourAt, draw, rootMeanSquare, valueAt } from "./fields.js";
import { $, page } from "./page.js";
import { placeText } from "./stage.js";
import { number, short, text, withStd } from "./text.js";
import { seen, viewOfTool } from "./view.js";

const onMap = () => (page.data ? page.state.view : viewOfTool[page.tool] ?? page.state.view);
export const aboutView = () => text(`about_${onMap() === "true_source" ? "source" : onMap()}`);

export function describePoint(place) {
  const found = valueAt(page.shown.field, place.y, place.x);
  const where = page.data ? page.data.placeText(place) : placeText("place", place);
  if (Number.isNaN(found)) return text("at_excluded", { place: where });
  const hasStd = onMap() === "mean" && page.picture.fields.std;
  const value = hasStd ? withStd(found, valueAt(page.picture.fields.std, place.y, place.x)) : short(found);
  return text("at_point", { place: where, value: withUnit(value) });
}

const withUnit = (value) => (page.data?.unitOf(onMap()) ? `${value} ${page.data.unitOf(onMap())}` : value);

function smallViews() {
  const others = page.state.truth ? ["mean", "std", "source", "start", "truth", "error"] : ["mean", "std", "source", "start"];
  return others.filter((view) => view !== onMap()).slice(0, page.state.truth ? 6 : 3);
}

function renderFacts() {
  const { scores, fields } = page.picture;
  const std = fields.std && short(rootMeanSquare(fields.std));
  const facts = [
    page.data ? [text("readings_count"), page.data.result.num_readings] : [text("sensors_count"), page.state.sensors.length],
    [text("typical_std"), page.data && std ? `${std} ${page.data.result.unit}` : std],
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
  if (page.picture.notes.length) say(page.picture.notes.join(" "));
}

const example = () => page.examples.find(({ regime }) => regime === page.state.regime);
const isSteady = () => (page.data ? page.data.isSteady : example()?.order === 0);
const timeText = () => (page.data ? page.data.timeText(page.state.time) : number(page.state.time * (example()?.reading_time ?? 1), 3));

function renderControls() {
  for (const button of $("views").children) {
    button.setAttribute("aria-pressed", button.dataset.view === onMap().replace("true_", ""));
    button.hidden = page.data ? !["mean", "std", "source"].includes(button.dataset.view) : ["truth", "error"].includes(button.dataset.view) && !page.state.truth;
  }
  for (const button of $("tool").children) button.setAttribute("aria-pressed", button.dataset.value === page.tool);
  $("about").textContent = aboutView();
  $("timeline").classList.toggle("steady", isSteady());
  for (const id of ["time", "play"]) $(id).disabled = isSteady();
  $("time").value = page.state.time;
  const phase = Math.abs(page.state.time - 1) < 1e-9 ? "time_reading" : page.state.time > 1 ? "time_forecast" : "time_now";
  $("time-now").textContent = isSteady() ? text("time_steady") : page.data ? timeText() : text(phase, { time: timeText() });
  $("time").setAttribute("aria-valuetext", $("time-now").textContent);
  $("regime").value = page.state.regime;
  $("seed").value = page.state.seed;
  $("noise").value = Math.log(page.state.noise).toFixed(1);
  $("noise-now").textContent = short(page.state.noise);
  $("resolution").value = page.state.resolution;
  $("colours").value = page.state.colours;
  $("truth").checked = page.state.truth;
  $("clear").disabled = page.tool === "sensor" ? !page.state.sensors.length : isPlain(page.state[page.tool]);
  $("best").hidden = page.tool !== "sensor";
  $("brush").hidden = page.tool === "sensor";
  if (page.tool !== "sensor") {
    $("blank").checked = page.state[page.tool].blank;
    $("blank-text").textContent = text(`blank_${page.tool}`);
  }
  $("stage-help").textContent = text(page.data ? "stage_help_data" : page.tool === "sensor" ? "stage_help" : "stage_help_draw");
  if (!page.data && example()) writeEquation($("equation"), example().equation);
}

const isPlain = ({ blank, strokes }) => !blank && !strokes.length;

export function announce(words) {
  $("said").textContent = words;
}

export function say(words) {
  $("note").hidden = !words;
  $("note").textContent = words ?? "";
}

// Shows the page: what it holds goes onto the map, the small maps and the controls.
export class Renderer {
  // `showView` is called where a small map is chosen; `isBusy` says whether an answer is awaited.
  constructor(stage, showView, isBusy) {
    Object.assign(this, { stage, showView, isBusy });
  }

  render() {
    renderControls();
    if (page.picture) {
      this.renderMap();
      this.renderSmallMaps();
      renderFacts();
      drawCoefficients($("coefficients"), page.picture.coefficients);
    }
    this.renderSensors();
  }

  renderMap() {
    const next = seen(page.picture, onMap(), page.state.colours);
    if (!next) return;
    page.shown = next;
    const { field, colours, low, high } = page.shown;
    draw($("map"), field, colours, low, high);
    if (!this.isBusy() || page.tool === "sensor") this.stage.clearInk();
    draw($("scale"), { rows: 1, columns: 256, values: Float32Array.from({ length: 256 }, (_, i) => i) }, colours, 0, 255);
    [$("low").textContent, $("high").textContent] = [short(low), withUnit(short(high))];
    const view = text(`view_${onMap() === "true_source" ? "source" : onMap()}`);
    $("map").setAttribute("aria-label", text("map_of", { view, time: timeText(), low: short(low), high: short(high) }));
  }

  renderSensors() {
    const values = new Map(page.picture?.readings.map(({ id, value }) => [id, value]) ?? []);
    const scale = page.picture && seen(page.picture, "mean", page.state.colours);
    const wordsOf = ({ id, y, x, words }, index) => {
      const value = values.get(id);
      const more = { number: index + 1, place: words ?? placeText("place", { y, x }), value: value === undefined ? "" : short(value) };
      return text(value === undefined ? "sensor" : "sensor_reads", more);
    };
    const colour = ({ id }) => (scale && values.has(id) ? colourAt(scale.colours, values.get(id), scale.low, scale.high) : null);
    this.stage.show(page.data ? page.data.result.places : page.state.sensors, wordsOf, colour);
  }

  renderSmallMaps() {
    const views = smallViews().filter((view) => seen(page.picture, view, page.state.colours));
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
          button.addEventListener("click", () => this.showView(view));
          return button;
        }),
      );
    }
    for (const button of container.children) {
      const { field, colours, low, high } = seen(page.picture, button.dataset.view, page.state.colours);
      draw(button.querySelector("canvas"), field, colours, low, high);
    }
  }
}
