// What the page shows, as one value: written to the address, read from it, and kept for undo and redo.

export const MOST_SENSORS = 60;
const STEPS = 65535;
const VIEWS = ["mean", "std", "source", "start", "truth", "error"];
const RESOLUTIONS = [64, 128, 256];
const COLOURS = ["auto", "viridis", "cividis"];

export const onSteps = (share) => Math.round(Math.max(0, Math.min(1, share)) * STEPS) / STEPS;

export const emptyDrawing = () => ({ blank: false, strokes: [] });

// The state that a scene of the server stands for.
export function stateOf(scene) {
  return {
    regime: scene.regime,
    seed: scene.seed,
    noise: scene.noise_std,
    resolution: scene.resolution,
    time: scene.time,
    view: "mean",
    truth: false,
    colours: "auto",
    sensors: scene.sensors.map(({ id, y, x }) => ({ id, y: onSteps(y), x: onSteps(x) })),
    start: scene.start,
    source: scene.source,
  };
}

function pack(write) {
  const bytes = [];
  write({
    byte: (value) => bytes.push(value & 255),
    word: (value) => bytes.push((value >> 8) & 255, value & 255),
  });
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function unpack(text, read) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  let place = 0;
  const byte = () => {
    if (place >= bytes.length) throw new RangeError("the text ends too early");
    place += 1;
    return bytes.charCodeAt(place - 1);
  };
  return read({ byte, word: () => 256 * byte() + byte(), more: () => place < bytes.length });
}

const packSensors = (sensors) =>
  pack(({ word }) => {
    for (const { id, y, x } of sensors) for (const value of [id, y * STEPS, x * STEPS]) word(Math.round(value));
  });

const unpackSensors = (text) =>
  unpack(text, ({ word, more }) => {
    const sensors = [];
    while (more()) sensors.push({ id: word(), y: word() / STEPS, x: word() / STEPS });
    return sensors.slice(0, MOST_SENSORS);
  });

const packDrawing = ({ blank, strokes }) =>
  pack(({ byte, word }) => {
    byte(blank ? 1 : 0);
    for (const { points, width, height } of strokes) {
      word(points.length);
      byte(Math.round(width * 500));
      byte(Math.round(height * 60) + 128);
      for (const share of points.flat()) word(Math.round(share * STEPS));
    }
  });

const unpackDrawing = (text) =>
  unpack(text, ({ byte, word, more }) => {
    const drawing = { blank: byte() === 1, strokes: [] };
    while (more()) {
      const count = word();
      const stroke = { width: byte() / 500, height: (byte() - 128) / 60, points: [] };
      for (let i = 0; i < count; i += 1) stroke.points.push([word() / STEPS, word() / STEPS]);
      drawing.strokes.push(stroke);
    }
    return drawing;
  });

const isPlain = (drawing) => !drawing.blank && drawing.strokes.length === 0;

export function encode(state) {
  const parts = new URLSearchParams({
    pde: state.regime,
    example: state.seed,
    noise: state.noise,
    n: state.resolution,
    t: state.time,
    view: state.view,
    truth: state.truth ? 1 : 0,
  });
  if (state.colours !== "auto") parts.set("colours", state.colours);
  parts.set("sensors", packSensors(state.sensors));
  if (!isPlain(state.start)) parts.set("start", packDrawing(state.start));
  if (!isPlain(state.source)) parts.set("source", packDrawing(state.source));
  return `#${parts}`;
}

// A part that makes no sense is left out, and the rest is taken.
export function decode(hash, regimes, opening) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const state = stateOf(opening);
  let isWhole = true;
  const take = (name, read, isValid) => {
    if (!parts.has(name)) return undefined;
    try {
      const value = read(parts.get(name));
      if (isValid(value)) return value;
    } catch {
      // falls through
    }
    isWhole = false;
    return undefined;
  };
  const between = (low, high) => (value) => value >= low && value <= high;
  const assign = (key, value) => {
    if (value !== undefined) state[key] = value;
  };
  assign("regime", take("pde", String, (value) => regimes.includes(value)));
  assign("seed", take("example", Number, (value) => Number.isInteger(value) && between(0, 9999)(value)));
  assign("noise", take("noise", Number, between(0.005, 2)));
  assign("resolution", take("n", Number, (value) => RESOLUTIONS.includes(value)));
  assign("time", take("t", Number, between(0, 2)));
  assign("view", take("view", String, (value) => VIEWS.includes(value)));
  assign("truth", take("truth", (value) => value === "1", () => true));
  assign("colours", take("colours", String, (value) => COLOURS.includes(value)));
  assign("sensors", take("sensors", unpackSensors, () => true));
  assign("start", take("start", unpackDrawing, isDrawing));
  assign("source", take("source", unpackDrawing, isDrawing));
  if (!state.truth && ["truth", "error"].includes(state.view)) state.view = "mean";
  return { state, isWhole };
}

const isDrawing = ({ strokes }) =>
  strokes.length <= 32 &&
  strokes.every(
    ({ points, width, height }) =>
      points.length >= 1 && points.length <= 300 && width >= 0.02 && width <= 0.3 && Math.abs(height) <= 2,
  );

export function sceneOf(state, layers, draft) {
  return {
    regime: state.regime,
    seed: state.seed,
    noise_std: state.noise,
    resolution: state.resolution,
    time: state.time,
    sensors: state.sensors,
    start: state.start,
    source: state.source,
    layers,
    draft,
  };
}

export class History {
  constructor(first) {
    this.states = [first];
    this.place = 0;
  }

  push(state) {
    this.states = [...this.states.slice(0, this.place + 1), state].slice(-100);
    this.place = this.states.length - 1;
  }

  // The latest state is replaced, not followed: for what only says how to look.
  replace(state) {
    this.states[this.place] = state;
  }

  get current() {
    return this.states[this.place];
  }

  get canUndo() {
    return this.place > 0;
  }

  get canRedo() {
    return this.place < this.states.length - 1;
  }

  step(by) {
    this.place = Math.max(0, Math.min(this.states.length - 1, this.place + by));
    return this.current;
  }
}
