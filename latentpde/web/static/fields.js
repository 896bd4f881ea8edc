// Fields: decoded from the server's base64, drawn with a colour table, read at a point.

import { TABLES } from "./colours.js";

const decoded = new Map();

function bytesOf(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function table(name) {
  if (!decoded.has(name)) decoded.set(name, bytesOf(TABLES[name]));
  return decoded.get(name);
}

export function fieldOf({ shape, data }) {
  return { rows: shape[0], columns: shape[1], values: new Float32Array(bytesOf(data).buffer) };
}

export function combine(a, b, merge) {
  return { ...a, values: a.values.map((value, i) => merge(value, b.values[i])) };
}

// Rows come from the bottom up, and a canvas counts from the top.
export function draw(canvas, field, colours, low, high) {
  const { rows, columns, values } = field;
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const scale = 255 / (high - low);
  let place = 0;
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = 0; column < columns; column += 1) {
      const value = values[row * columns + column];
      const index = 3 * Math.max(0, Math.min(255, Math.round((value - low) * scale)));
      const missing = Number.isNaN(value);
      image.data[place] = colours[index];
      image.data[place + 1] = colours[index + 1];
      image.data[place + 2] = colours[index + 2];
      image.data[place + 3] = missing ? 0 : 255;
      place += 4;
    }
  }
  context.putImageData(image, 0, 0);
}

export function colourAt(colours, value, low, high) {
  const index = 3 * Math.max(0, Math.min(255, Math.round((255 * (value - low)) / (high - low))));
  return `rgb(${colours[index]}, ${colours[index + 1]}, ${colours[index + 2]})`;
}

export function valueAt(field, y, x) {
  const row = Math.min(field.rows - 1, Math.floor(y * field.rows));
  const column = Math.min(field.columns - 1, Math.floor(x * field.columns));
  return field.values[row * field.columns + column];
}

export function rootMeanSquare(field) {
  let sum = 0;
  let count = 0;
  for (const value of field.values) {
    if (Number.isNaN(value)) continue;
    sum += value * value;
    count += 1;
  }
  return Math.sqrt(sum / Math.max(1, count));
}

export function range(field) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of field.values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
