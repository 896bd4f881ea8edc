// The map under the hand: sensors that are added, moved and removed, strokes that are drawn; by mouse, touch and keys.

import { number, text } from "./text.js";
import { onSteps } from "./state.js";

const OUTSIDE = 14; // pixels beyond the edge where a sensor is let go
const STEP = 0.02;
const APART = 0.015; // between points of a stroke
const MOST_POINTS = 300;
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] };

const inside = (share) => Math.max(0, Math.min(1, share));

export class Stage {
  // `act` has add, move, remove, stroke, point: what the page does with what the hand does.
  constructor(root, act) {
    this.root = root;
    this.act = act;
    this.layer = root.querySelector("#sensors");
    this.crosshair = root.querySelector("#crosshair");
    this.leaving = root.querySelector("#leaving");
    this.ink = root.querySelector("#ink");
    this.mode = "sensor";
    this.brush = { width: 0.06, height: 1 };
    this.cursor = { y: 0.5, x: 0.5 };
    this.buttons = new Map();
    root.addEventListener("click", (event) => this.clicked(event));
    root.addEventListener("pointerdown", (event) => this.strokeBegins(event));
    root.addEventListener("pointermove", (event) => this.hovered(event));
    root.addEventListener("pointerleave", () => this.act.point(null));
    root.addEventListener("keydown", (event) => this.key(event));
    root.addEventListener("focus", () => this.showCursor(root.matches(":focus-visible")));
    root.addEventListener("blur", () => this.showCursor(false));
  }

  setMode(mode) {
    this.mode = mode;
    this.root.classList.toggle("drawing", mode === "start" || mode === "source");
    this.root.classList.toggle("fixed", mode === "fixed");
  }

  place(event) {
    const box = this.root.getBoundingClientRect();
    return { y: 1 - (event.clientY - box.top) / box.height, x: (event.clientX - box.left) / box.width };
  }

  isOutside(event) {
    const box = this.root.getBoundingClientRect();
    const over = Math.max(box.left - event.clientX, event.clientX - box.right, box.top - event.clientY, event.clientY - box.bottom);
    return over > OUTSIDE;
  }

  clicked(event) {
    if (this.mode !== "sensor" || event.target.closest(".sensor")) return;
    const { y, x } = this.place(event);
    if (y < 0 || y > 1 || x < 0 || x > 1) return;
    this.act.add(onSteps(y), onSteps(x));
  }

  hovered(event) {
    const { y, x } = this.place(event);
    if (event.pointerType === "mouse" && y >= 0 && y <= 1 && x >= 0 && x <= 1) this.act.point({ y, x });
  }

  // Sensors are buttons, so that keys and screen readers find them; each keeps its button while it lives.
  show(sensors, describe, colour) {
    const wanted = new Set(sensors.map(({ id }) => id));
    for (const [id, button] of this.buttons) {
      if (!wanted.has(id)) {
        button.remove();
        this.buttons.delete(id);
      }
    }
    sensors.forEach((sensor, index) => {
      let button = this.buttons.get(sensor.id);
      if (!button) {
        button = this.newButton(sensor.id);
        this.buttons.set(sensor.id, button);
      }
      if (this.layer.children[index] !== button) this.layer.insertBefore(button, this.layer.children[index] ?? null);
      button.style.left = `${100 * sensor.x}%`;
      button.style.top = `${100 * (1 - sensor.y)}%`;
      button.setAttribute("aria-label", describe(sensor, index));
      const fill = colour(sensor);
      if (fill) button.style.setProperty("--value", fill);
      else button.style.removeProperty("--value");
    });
  }

  newButton(id) {
    const button = document.createElement("button");
    button.className = "sensor new";
    button.dataset.id = id;
    button.addEventListener("pointerdown", (event) => this.dragBegins(event, id, button));
    // a finger on a sensor moves it, and never the page
    button.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    button.addEventListener("keydown", (event) => this.sensorKey(event, id));
    button.addEventListener("animationend", () => button.classList.remove("new"));
    return button;
  }

  dragBegins(event, id, button) {
    if (this.mode !== "sensor" || event.button !== 0) return;
    event.stopPropagation();
    button.setPointerCapture(event.pointerId);
    button.focus({ preventScroll: true });
    const first = [event.clientX, event.clientY];
    let moved = false;
    const move = (next) => {
      moved ||= Math.hypot(next.clientX - first[0], next.clientY - first[1]) > 3;
      if (!moved) return;
      const isLeaving = this.isOutside(next);
      button.classList.toggle("leaving-now", isLeaving);
      this.leaving.hidden = !isLeaving;
      const { y, x } = this.place(next);
      if (isLeaving) {
        button.style.left = `${100 * x}%`;
        button.style.top = `${100 * (1 - y)}%`;
      } else this.act.move(id, onSteps(inside(y)), onSteps(inside(x)), false);
    };
    const end = (last) => {
      button.removeEventListener("pointermove", move);
      button.removeEventListener("pointerup", end);
      button.removeEventListener("pointercancel", end);
      button.classList.remove("leaving-now");
      this.leaving.hidden = true;
      if (!moved) return;
      if (last.type === "pointerup" && this.isOutside(last)) this.act.remove(id);
      else this.act.settle();
    };
    button.addEventListener("pointermove", move);
    button.addEventListener("pointerup", end);
    button.addEventListener("pointercancel", end);
  }

  sensorKey(event, id) {
    if (this.mode !== "sensor") return;
    const arrow = ARROWS[event.key];
    if (arrow) {
      const step = event.shiftKey ? 4 * STEP : STEP;
      this.act.nudge(id, step * arrow[0], step * arrow[1]);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.act.remove(id);
      this.root.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  key(event) {
    if (event.target !== this.root) return;
    const arrow = ARROWS[event.key];
    if (arrow) {
      const step = event.shiftKey ? 4 * STEP : STEP;
      this.cursor = { y: inside(this.cursor.y + step * arrow[0]), x: inside(this.cursor.x + step * arrow[1]) };
      this.showCursor(true);
      this.act.point(this.cursor, true);
    } else if ((event.key === "Enter" || event.key === " ") && this.mode !== "fixed") {
      const { y, x } = this.cursor;
      if (this.mode === "sensor") this.act.add(onSteps(y), onSteps(x));
      else this.act.stroke(this.mode, { ...this.brush, points: [[onSteps(y), onSteps(x)]] });
    } else return;
    event.preventDefault();
  }

  showCursor(isShown) {
    this.crosshair.hidden = !isShown;
    this.crosshair.style.left = `${100 * this.cursor.x}%`;
    this.crosshair.style.top = `${100 * (1 - this.cursor.y)}%`;
  }

  strokeBegins(event) {
    if ((this.mode !== "start" && this.mode !== "source") || event.button !== 0) return;
    event.preventDefault();
    this.root.setPointerCapture(event.pointerId);
    const mode = this.mode;
    const points = [];
    const take = (next) => {
      const { y, x } = this.place(next);
      const point = [onSteps(inside(y)), onSteps(inside(x))];
      const last = points.at(-1);
      if (points.length < MOST_POINTS && (!last || Math.hypot(point[0] - last[0], point[1] - last[1]) > APART)) {
        points.push(point);
        this.preview(point);
      }
    };
    const end = () => {
      this.root.removeEventListener("pointermove", take);
      this.root.removeEventListener("pointerup", end);
      this.root.removeEventListener("pointercancel", end);
      this.act.stroke(mode, { ...this.brush, points });
    };
    take(event);
    this.root.addEventListener("pointermove", take);
    this.root.addEventListener("pointerup", end);
    this.root.addEventListener("pointercancel", end);
  }

  preview([y, x]) {
    const size = 512;
    if (this.ink.width !== size) [this.ink.width, this.ink.height] = [size, size];
    const context = this.ink.getContext("2d");
    const radius = 1.6 * this.brush.width * size;
    const shade = context.createRadialGradient(x * size, (1 - y) * size, 0, x * size, (1 - y) * size, radius);
    const colour = this.brush.height > 0 ? "214, 80, 60" : "50, 110, 200";
    shade.addColorStop(0, `rgba(${colour}, 0.35)`);
    shade.addColorStop(1, `rgba(${colour}, 0)`);
    context.fillStyle = shade;
    context.fillRect(0, 0, size, size);
  }

  clearInk() {
    this.ink.getContext("2d").clearRect(0, 0, this.ink.width, this.ink.height);
  }
}

export const placeText = (key, { y, x }, more = {}) => text(key, { x: number(x), y: number(y), ...more });
