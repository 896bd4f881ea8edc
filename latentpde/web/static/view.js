// How a picture of the server becomes maps: which layers a view needs, with which colours and between which values.

import { combine, table } from "./fields.js";

const STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

// The next round number, so that colours do not shift with every move.
function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * STEPS.find((step) => step * power >= value * 0.999);
}

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

const coloursOf = (name, isSigned) => {
  if (name !== "auto") return table(name);
  if (isSigned) return table(isDark() ? "berlin" : "RdBu_r");
  return table(isDark() ? "magma" : "viridis");
};

// The field of a view with its limits; null where the picture lacks a layer of it.
export function seen(picture, view, colours) {
  const { fields, scale } = picture;
  const size = { field: roundUp(scale.field), source: roundUp(scale.source) };
  const signed = (field, limit) => field && { field, low: -limit, high: limit, colours: coloursOf(colours, true) };
  const positive = (field, limit) => field && { field, low: 0, high: limit, colours: coloursOf(colours, false) };
  const start = fields.start && roundUp(Math.max(scale.field, picture.startSize));
  // a user's own field may be far from zero, such as a temperature
  if (picture.limits && view === "mean") {
    const [low, high] = picture.limits;
    if (low > 0 || high < 0) return { field: fields.mean, low, high, colours: coloursOf(colours, false) };
  }
  switch (view) {
    case "mean": return signed(fields.mean, size.field);
    case "truth": return signed(fields.truth, size.field);
    case "start": return signed(fields.start, start);
    case "source": return signed(fields.source, size.source);
    case "true_source": return signed(fields.true_source, size.source);
    case "std": return positive(fields.std, picture.limits ? roundUp((picture.limits[1] - picture.limits[0]) / 3) : size.field / 2);
    case "error": {
      if (!fields.truth || !fields.mean) return null;
      return positive(combine(fields.mean, fields.truth, (a, b) => Math.abs(a - b)), size.field / 2);
    }
    default: return null;
  }
}

// While the source is drawn the true one is shown, else what is known of it.
export const viewOfTool = { start: "start", source: "true_source" };

export const layersFor = (state, isDrawingSource) => {
  const layers = ["mean", "std", "source", "start"];
  if (state.truth) layers.push("truth");
  if (isDrawingSource) layers.push("true_source");
  return layers;
};

export const layersOfFrame = (state) => (state.truth ? ["mean", "std", "truth"] : ["mean", "std"]);
