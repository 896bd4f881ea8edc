// Posteriors of coefficients as small densities.

import { short, text, withStd } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 52;
const STEPS = 160;

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

export function statistics(draws) {
  const mean = draws.reduce((sum, draw) => sum + draw, 0) / draws.length;
  const variance = draws.reduce((sum, draw) => sum + (draw - mean) ** 2, 0) / Math.max(1, draws.length - 1);
  return { mean, std: Math.sqrt(variance) };
}

// A kernel estimate with Silverman's width, reflected at the bounds so that nothing leaks out of the prior.
export function density(draws, [low, high]) {
  const { std } = statistics(draws);
  const width = Math.max(1.06 * std * draws.length ** -0.2, 0.004 * (high - low));
  const heights = [];
  for (let i = 0; i <= STEPS; i += 1) {
    const at = low + ((high - low) * i) / STEPS;
    let sum = 0;
    for (const draw of draws) {
      for (const image of [draw, 2 * low - draw, 2 * high - draw]) sum += Math.exp(-0.5 * ((at - image) / width) ** 2);
    }
    heights.push(sum / (draws.length * width * Math.sqrt(2 * Math.PI)));
  }
  return heights;
}

function chart({ draws, bounds, truth }) {
  const [low, high] = bounds;
  const heights = density(draws, bounds);
  const top = Math.max(...heights, 1.6 / (high - low));
  const across = (value) => (WIDTH * (value - low)) / (high - low);
  const up = (value) => HEIGHT - 1 - (HEIGHT - 5) * (value / top);
  const line = heights.map((value, i) => `${((WIDTH * i) / STEPS).toFixed(1)} ${up(value).toFixed(1)}`).join("L");
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const flat = up(1 / (high - low));
  svg.append(
    shape("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }),
    shape("line", { class: "prior", x1: 0, x2: WIDTH, y1: flat, y2: flat }),
    shape("path", { class: "density", d: `M0 ${HEIGHT - 1}L${line}L${WIDTH} ${HEIGHT - 1}` }),
  );
  if (truth !== null && truth !== undefined) {
    svg.append(shape("line", { class: "true-value", x1: across(truth), x2: across(truth), y1: 0, y2: HEIGHT }));
  }
  return svg;
}

function element(name, className, content = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = content;
  return made;
}

export function drawCoefficients(container, coefficients) {
  container.replaceChildren(
    ...coefficients.map((coefficient) => {
      const { mean, std } = statistics(coefficient.draws);
      const truth = coefficient.truth;
      const unit = coefficient.unit === "1" || /[LTU]/.test(coefficient.unit) ? "" : ` ${coefficient.unit}`;
      const value = `${withStd(mean, std)}${unit.trimEnd()}`;
      const values = { meaning: coefficient.meaning, value, truth: short(truth ?? NaN) };
      const card = element("div", "coefficient");
      card.setAttribute("role", "img");
      card.setAttribute("aria-label", text(truth === null || truth === undefined ? "coefficient" : "coefficient_truth", values));
      const line = element("div", "line");
      line.append(element("span", "", coefficient.meaning), element("b", "", value));
      const ends = element("div", "ends");
      ends.append(...coefficient.bounds.map((bound) => element("span", "", short(bound))));
      card.append(line, chart(coefficient), ends);
      return card;
    }),
  );
}

// Indices after an underscore become lower; everything else stays text.
export function writeEquation(container, equation) {
  container.replaceChildren(
    ...equation.replaceAll(" - ", " − ").split(/(_[a-z]+)/).map((part) => {
      if (!part.startsWith("_")) return document.createTextNode(part);
      const sub = document.createElement("sub");
      sub.textContent = part.slice(1);
      return sub;
    }),
  );
}
