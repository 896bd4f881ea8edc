"use strict";
(() => {
  const COLOURS = JSON.parse(document.getElementById("colours").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const GAP = 65535;
  const element = (name, attributes, parent, text) => {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  };
  const number = (value, digits = 4) => {
    if (!Number.isFinite(value)) return "unknown";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
    return text.replace("-", "\u2212");
  };
  const withUnit = (text, unit) => unit ? `${text}\u00a0${unit}` : text;
  // degrees of a map that crosses the seam of its longitudes
  const around = (degrees) => degrees >= 360 ? degrees - 360 : degrees < -180 ? degrees + 360 : degrees;
  const ticks = (low, high, most) => {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9); k++) found.push(Number((k * step).toPrecision(12)));
    return found;
  };
  const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const lut = name => { const b = bytes(COLOURS[name]); return i => [b[3 * i], b[3 * i + 1], b[3 * i + 2]]; };
  const LUTS = Object.fromEntries(Object.keys(COLOURS).map(name => [name, lut(name)]));

  function unpack(data) {
    const [ny, nx] = data.shape, count = ny * nx;
    for (const layer of data.layers) {
      const b = bytes(layer.data), view = new DataView(b.buffer);
      layer.at = (frame, cell) => {
        const code = view.getUint16(2 * (frame * count + cell), true);
        return code === GAP ? NaN : layer.low + code * layer.step;
      };
      layer.known = data.times.map((_, frame) => { for (let c = 0; c < count; c++) if (Number.isFinite(layer.at(frame, c))) return true; return false; });
    }
    const packed = data.excluded && bytes(data.excluded);
    data.isExcluded = cell => packed ? Boolean(packed[cell >> 3] & (128 >> (cell & 7))) : false;
    data.layer = name => data.layers.find(layer => layer.name === name);
    return data;
  }
  // ends and colours of a layer's scale: the same at all times, or fitted to one frame
  function scaleOf(data, layer, frame) {
    if (data.same || layer.scale === "probability") return data.scales[layer.scale];
    let low = Infinity, high = -Infinity;
    for (const other of data.layers) {
      if (other.scale !== layer.scale || other.name.startsWith("q")) continue;
      for (let cell = 0; cell < data.shape[0] * data.shape[1]; cell++) {
        const value = other.at(frame, cell);
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (!(high > low)) return data.scales[layer.scale];
    if (layer.scale === "spread") return [low > .4 * high ? low : 0, high, "spread"];
    const far = Math.max(-low, high);
    return low < 0 && high > 0 && Math.min(-low, high) > .1 * far ? [-far, far, "signed"] : [low, high, "value"];
  }
  const share = (scale, value) => Math.min(255, Math.max(0, Math.round(255 * (value - scale[0]) / (scale[1] - scale[0]))));
  // a raster of one frame, north up; gaps stay transparent
  function raster(data, layer, frame) {
    const [ny, nx] = data.shape, canvas = document.createElement("canvas");
    canvas.width = nx; canvas.height = ny;
    const context = canvas.getContext("2d"), image = context.createImageData(nx, ny), scale = scaleOf(data, layer, frame);
    for (let row = 0; row < ny; row++) for (let col = 0; col < nx; col++) {
      const value = layer.at(frame, row * nx + col);
      if (!Number.isFinite(value)) continue;
      const [r, g, b] = LUTS[scale[2]](share(scale, value)), at = 4 * ((ny - 1 - row) * nx + col);
      image.data[at] = r; image.data[at + 1] = g; image.data[at + 2] = b; image.data[at + 3] = 255;
    }
    if (data.excluded) for (let pass = 0; pass < 2; pass++) spill(image, nx, ny);
    context.putImageData(image, 0, 0);
    return canvas;
  }
  // colours one cell into what is excluded, which is drawn over it: no pale rim where the map is smoothed
  function spill(image, nx, ny) {
    const from = image.data.slice();
    for (let y = 0; y < ny; y++) for (let x = 0; x < nx; x++) {
      const at = 4 * (y * nx + x);
      if (from[at + 3]) continue;
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        const other = 4 * ((y + dy) * nx + x + dx);
        if (x + dx >= 0 && x + dx < nx && y + dy >= 0 && y + dy < ny && from[other + 3]) {
          for (let k = 0; k < 4; k++) image.data[at + k] = from[other + k];
          break;
        }
      }
    }
  }
  function thumbnail(canvas, data, layer, frame) {
    const [, , width, height] = data.box;
    canvas.width = 220; canvas.height = Math.max(24, Math.min(440, Math.round(220 * height / width)));
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = layer.name !== "readings";
    context.imageSmoothingQuality = "high";
    context.drawImage(raster(data, layer, frame), 0, 0, canvas.width, canvas.height);
    if (!data.excluded) return;
    const [ny, nx] = data.shape, w = canvas.width / nx, h = canvas.height / ny;
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--gap");
    for (let cell = 0; cell < nx * ny; cell++) if (data.isExcluded(cell)) context.fillRect((cell % nx) * w - .3, (ny - 1 - Math.floor(cell / nx)) * h - .3, w + .6, h + .6);
  }

  function viewer(root) {
    const data = unpack(JSON.parse(root.querySelector("script").textContent));
    const find = name => root.querySelector(name);
    const stage = find(".stage"), readout = find(".readout"), what = find(".what"), slider = find(".time input"), output = find(".time output");
    const play = find(".play"), showReadings = find(".show-readings"), key = find(".key"), series = find(".series");
    const [x0, y0, width, height] = data.box, [ny, nx] = data.shape;
    const user = (axis, value) => value / data.axes[axis].scale + data.axes[axis].origin;
    const plane = (axis, value) => (value - data.axes[axis].origin) * data.axes[axis].scale;
    const last = data.times.length - 1;
    const state = { layer: data.layers[0], frame: last, probe: null, pinned: false };
    const margin = { left: 58, right: 14, top: 8, bottom: 44 };
    let box = null;

    const cellAt = (x, y) => {
      const col = Math.floor((x - x0) / width * nx), row = Math.floor((y - y0) / height * ny);
      return col < 0 || row < 0 || col >= nx || row >= ny ? -1 : row * nx + col;
    };
    const toScreen = (x, y) => [box.left + (x - x0) / width * box.width, box.top + (1 - (y - y0) / height) * box.height];
    const coordinates = (x, y) => ["x", "y"].map(axis => {
      const one = data.axes[axis];
      return one.unit === "°" ? `${one.name} ${around(user(axis, axis === "x" ? x : y)).toFixed(2)}°` : `${one.name} = ${withUnit(number(user(axis, axis === "x" ? x : y)), one.unit)}`;
    }).join(", ");

    const layerButtons = data.layers.map(layer => {
      const button = document.createElement("button");
      button.type = "button"; button.textContent = layer.title; button.setAttribute("role", "radio"); button.dataset.layer = layer.name;
      button.addEventListener("click", () => { state.layer = layer; draw(); });
      find(".layers").appendChild(button);
      return button;
    });
    find(".layers").addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = (data.layers.indexOf(state.layer) + step + data.layers.length) % data.layers.length;
      state.layer = data.layers[next]; draw(); layerButtons[next].focus();
    });

    function layout() {
      const room = stage.parentElement.clientWidth;
      const aspect = height / width;
      let inner = Math.min(stage.clientWidth || room, room) - margin.left - margin.right;
      const tallest = Math.max(260, Math.min(620, 0.72 * window.innerHeight));
      let tall = inner * aspect;
      if (tall > tallest) { tall = tallest; inner = tall / aspect; }
      inner = Math.max(40, inner); tall = Math.max(30, tall);
      box = { left: margin.left, top: margin.top, width: inner, height: tall };
      stage.style.height = `${tall + margin.top + margin.bottom}px`;
    }

    function draw() {
      layout();
      stage.replaceChildren();
      const { layer } = state;
      let frame = state.frame;
      layerButtons.forEach((button, i) => {
        const chosen = data.layers[i] === layer;
        button.setAttribute("aria-checked", String(chosen)); button.tabIndex = chosen ? 0 : -1;
      });
      const ratio = Math.max(2, window.devicePixelRatio || 1), canvas = document.createElement("canvas");
      canvas.width = Math.round(box.width * ratio); canvas.height = Math.round(box.height * ratio);
      Object.assign(canvas.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
      canvas.setAttribute("aria-hidden", "true");
      const context = canvas.getContext("2d"), css = getComputedStyle(root);
      context.fillStyle = css.getPropertyValue("--gap"); context.fillRect(0, 0, canvas.width, canvas.height);
      context.strokeStyle = css.getPropertyValue("--hatch"); context.lineWidth = ratio;
      context.beginPath();
      for (let d = -canvas.height; d < canvas.width; d += 7 * ratio) { context.moveTo(d, canvas.height); context.lineTo(d + canvas.height, 0); }
      context.stroke();
      context.imageSmoothingEnabled = layer.name !== "readings"; context.imageSmoothingQuality = "high";
      context.drawImage(raster(data, layer, frame), 0, 0, canvas.width, canvas.height);
      if (data.excluded) {
        context.fillStyle = css.getPropertyValue("--gap");
        const w = canvas.width / nx, h = canvas.height / ny;
        for (let cell = 0; cell < nx * ny; cell++) if (data.isExcluded(cell)) context.fillRect((cell % nx) * w - .5, (ny - 1 - Math.floor(cell / nx)) * h - .5, w + 1, h + 1);
        context.strokeStyle = css.getPropertyValue("--text"); context.lineWidth = 1.2 * ratio; context.beginPath();
        for (let row = 0; row < ny; row++) for (let col = 0; col < nx; col++) {  // the coast
          const here = data.isExcluded(row * nx + col), y = (ny - 1 - row) * h;
          if (col + 1 < nx && here !== data.isExcluded(row * nx + col + 1)) { context.moveTo((col + 1) * w, y); context.lineTo((col + 1) * w, y + h); }
          if (row + 1 < ny && here !== data.isExcluded((row + 1) * nx + col)) { context.moveTo(col * w, y); context.lineTo((col + 1) * w, y); }
        }
        context.stroke();
      }
      if (!state.onPaper) stage.appendChild(canvas);
      const svg = element("svg", { width: "100%", height: "100%", "aria-hidden": "true" }, stage);
      // browsers print a canvas cut off at its lower edge, and an image as it is
      if (state.onPaper) element("image", { href: canvas.toDataURL(), x: box.left, y: box.top, width: box.width, height: box.height, preserveAspectRatio: "none" }, svg);
      element("rect", { class: "frame", x: box.left, y: box.top, width: box.width, height: box.height }, svg);
      drawAxes(svg);
      if (showReadings && showReadings.checked) drawStations(svg);
      drawProbe(svg);
      drawKey();
      drawSeries();
      const known = layer.known[frame] ? "" : " Not known at this time.";
      what.textContent = `${layer.title}${layer.unit ? ` (${layer.unit})` : ""}: ${layer.what}.${known}`;
      stage.setAttribute("aria-label", `Map of ${layer.what}${data.labels.length > 1 ? ` at ${data.labels[frame]}` : ""}. Arrow keys move the point that is read out.`);
      if (slider) {
        slider.value = frame; output.textContent = data.labels[frame]; slider.setAttribute("aria-valuetext", data.labels[frame]);
        root.querySelectorAll(".strip").forEach(strip => [...strip.children].forEach((button, i) => button.setAttribute("aria-current", String(i === frame))));
      }
      tell();
    }

    function drawAxes(svg) {
      for (const axis of ["x", "y"]) {
        const [start, length] = axis === "x" ? [x0, width] : [y0, height];
        const most = Math.max(2, Math.floor((axis === "x" ? box.width / 80 : box.height / 55)));
        const ends = [user(axis, start), user(axis, start + length)].sort((a, b) => a - b);
        for (const tick of ticks(ends[0], ends[1], most)) {
          const [x, y] = axis === "x" ? toScreen(plane("x", tick), y0) : toScreen(x0, plane("y", tick));
          const label = data.axes[axis].unit === "°" ? `${number(around(tick), 6)}°` : number(tick, 6);
          if (axis === "x") { element("line", { class: "tick", x1: x, x2: x, y1: y, y2: y + 5 }, svg); element("text", { x, y: y + 18, "text-anchor": "middle" }, svg, label); }
          else { element("line", { class: "tick", x1: x - 5, x2: x, y1: y, y2: y }, svg); element("text", { x: x - 8, y: y + 4, "text-anchor": "end" }, svg, label); }
        }
        const one = data.axes[axis], title = one.unit && one.unit !== "°" ? `${one.name} (${one.unit})` : one.name;
        if (axis === "x") element("text", { class: "title", x: box.left + box.width / 2, y: box.top + box.height + 36, "text-anchor": "middle" }, svg, title);
        else element("text", { class: "title", transform: `translate(12 ${box.top + box.height / 2}) rotate(-90)`, "text-anchor": "middle" }, svg, title);
      }
    }

    function drawStations(svg) {
      const field = scaleOf(data, data.layers[0], state.frame), radius = data.stations.length > 400 ? 2.2 : data.stations.length > 120 ? 3.4 : 4.6;
      const coloured = state.layer.scale === "field";
      for (const station of data.stations) {
        const [cx, cy] = toScreen(station.x, station.y), reading = station.readings.find(one => one[0] === state.frame);
        if (!reading) { if (!data.cells) element("circle", { class: "station empty", cx, cy, r: radius - 1 }, svg); continue; }
        const fill = coloured ? `rgb(${LUTS[field[2]](share(field, reading[1])).join()})` : "#fff";
        if (coloured && radius > 3) element("circle", { class: "station-ring", cx, cy, r: radius + .8 }, svg);
        element("circle", { class: "station", cx, cy, r: coloured ? radius : radius - 1.4, fill }, svg);
        if (reading.length > 3) element("circle", { class: "odd-ring", cx, cy, r: radius + 4 }, svg);
      }
    }
    function drawProbe(svg) {
      if (!state.probe) return;
      const [x, y] = toScreen(...state.probe);
      for (const cls of ["probe-back", "probe"]) element("path", { class: cls, d: `M${x - 9} ${y}h6m6 0h6M${x} ${y - 9}v6m0 6v6` }, svg);
    }
    function drawKey() {
      key.replaceChildren();
      const scale = scaleOf(data, state.layer, state.frame), wide = 280;
      key.setAttribute("viewBox", `0 0 ${wide} 44`);
      const steps = 64;
      for (let i = 0; i < steps; i++) element("rect", { x: 6 + i * (wide - 12) / steps, y: 2, width: (wide - 12) / steps + .6, height: 14, fill: `rgb(${LUTS[scale[2]](Math.round(255 * (i + .5) / steps)).join()})` }, key);
      for (const tick of ticks(scale[0], scale[1], 4)) {
        const x = 6 + (wide - 12) * (tick - scale[0]) / (scale[1] - scale[0]);
        element("line", { class: "tick", x1: x, x2: x, y1: 16, y2: 20 }, key);
        element("text", { x: Math.min(wide - 14, Math.max(12, x)), y: 33, "text-anchor": "middle" }, key, state.layer.scale === "probability" ? `${Math.round(100 * tick)} %` : number(tick));
      }
      key.setAttribute("aria-label", `Colours from ${number(scale[0])} to ${withUnit(number(scale[1]), state.layer.unit)}`);
    }

    const nearestStation = () => {
      if (!state.probe) return null;
      const [px, py] = toScreen(...state.probe);
      let best = null, least = 12;
      for (const station of data.stations) {
        const [x, y] = toScreen(station.x, station.y), distance = Math.hypot(x - px, y - py);
        if (distance < least) { least = distance; best = station; }
      }
      return best;
    };
    function tell() {
      readout.replaceChildren();
      const line = (tag, text) => { const made = document.createElement(tag); made.textContent = text; readout.appendChild(made); };
      if (!state.probe) { line("span", "Point at the map, or tap it, to read values there. A click keeps the point."); return; }
      const cell = cellAt(...state.probe), frame = state.frame;
      if (cell < 0) return;
      line("span", coordinates(...state.probe) + (data.labels.length > 1 ? `, ${data.labels[frame]}` : ""));
      if (data.isExcluded(cell)) { line("strong", "excluded"); return; }
      const value = name => data.layer(name) ? data.layer(name).at(frame, cell) : NaN, unit = data.layers[0].unit;
      const mean = value("mean"), std = value("std");
      if (Number.isFinite(std)) {
        const places = std > 0 ? Math.max(0, Math.min(8, 1 - Math.floor(Math.log10(std)))) : 4, size = Math.max(Math.abs(mean), std);
        const plain = size < 1e6 && size >= 1e-4;
        line("strong", withUnit(plain ? `${mean.toFixed(places)} ± ${std.toFixed(places)}`.replace("-", "\u2212") : `${number(mean)} ± ${number(std, 2)}`, unit));
        line("span", `90 % between ${number(value("q0.05"))} and ${number(value("q0.95"))}`);
      } else line("strong", withUnit(number(mean), unit));
      if (data.layer("above")) line("span", `${data.layer("above").title}: ${Math.round(100 * value("above"))} %`);
      if (Number.isFinite(value("truth"))) line("span", `truth ${number(value("truth"))}`);
      const station = nearestStation();
      if (station) {
        const reading = station.readings.find(one => one[0] === frame);
        line("span", `${station.name || (data.cells ? "cell" : "station")}: ` + (reading ? `read ${withUnit(number(reading[1]), unit)}` + (reading.length > 3 ? `, does not fit (z = ${number(reading[3])})` : "") : "no reading at this time"));
      }
    }
    function drawSeries() {
      if (!series) return;
      series.replaceChildren();
      const cell = state.probe ? cellAt(...state.probe) : -1;
      if (cell < 0 || data.isExcluded(cell)) { series.style.display = "none"; return; }
      series.style.display = "";
      const wide = 300, tall = 130, edge = { left: 40, right: 8, top: 8, bottom: 22 };
      series.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
      const value = (name, frame) => data.layer(name) ? data.layer(name).at(frame, cell) : NaN;
      const rows = data.times.map((time, frame) => [time, value("mean", frame), value("q0.05", frame), value("q0.95", frame)]);
      const station = nearestStation(), read = station ? station.readings : [];
      const all = rows.flatMap(row => row.slice(1)).concat(read.map(one => one[1])).filter(Number.isFinite);
      let low = Math.min(...all), high = Math.max(...all);
      if (low === high) { low -= 1; high += 1; }
      const t0 = data.times[0], t1 = data.times[last];
      const px = t => edge.left + (t - t0) / (t1 - t0) * (wide - edge.left - edge.right), py = v => edge.top + (high - v) / (high - low) * (tall - edge.top - edge.bottom);
      element("line", { class: "axis", x1: edge.left, x2: wide - edge.right, y1: tall - edge.bottom, y2: tall - edge.bottom }, series);
      for (const tick of ticks(low, high, 3)) element("text", { x: edge.left - 5, y: py(tick) + 4, "text-anchor": "end" }, series, number(tick));
      if (data.spread) element("polygon", { class: "band", points: rows.map(r => `${px(r[0])},${py(r[2])}`).concat(rows.slice().reverse().map(r => `${px(r[0])},${py(r[3])}`)).join(" ") }, series);
      element("polyline", { class: "line", points: rows.map(r => `${px(r[0])},${py(r[1])}`).join(" ") }, series);
      element("line", { class: "now", x1: px(data.times[state.frame]), x2: px(data.times[state.frame]), y1: edge.top, y2: tall - edge.bottom }, series);
      for (const one of read) element("circle", { class: "dot", cx: px(one[2]), cy: py(one[1]), r: 3 }, series);
      element("text", { x: edge.left, y: tall - 6 }, series, data.short[0]);
      element("text", { x: wide - edge.right, y: tall - 6, "text-anchor": "end" }, series, data.short[last]);
      series.setAttribute("aria-label", `The field at this point in time, with its 90 % interval${read.length ? " and the readings of the station" : ""}`);
    }

    const point = event => {
      const rectangle = stage.getBoundingClientRect();
      const x = x0 + (event.clientX - rectangle.left - box.left) / box.width * width, y = y0 + (1 - (event.clientY - rectangle.top - box.top) / box.height) * height;
      return cellAt(x, y) < 0 ? null : [x, y];
    };
    const refresh = () => { const svg = stage.querySelector("svg"); svg.querySelectorAll(".probe, .probe-back").forEach(e => e.remove()); drawProbe(svg); tell(); drawSeries(); };
    stage.addEventListener("pointermove", event => { if (state.pinned && event.pointerType === "mouse") return; const at = point(event); if (at) { state.probe = at; refresh(); } });
    stage.addEventListener("pointerleave", event => { if (!state.pinned && event.pointerType === "mouse") { state.probe = null; refresh(); } });
    stage.addEventListener("click", event => { const at = point(event); if (!at) return; state.pinned = !state.pinned; state.probe = at; refresh(); });
    stage.addEventListener("keydown", event => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.key === "Escape") { state.probe = null; state.pinned = false; refresh(); return; }
      if (!move) return;
      event.preventDefault();
      const from = state.probe || [x0 + width / 2, y0 + height / 2], to = [from[0] + move[0] * width / nx * 2, from[1] + move[1] * height / ny * 2];
      if (cellAt(...to) >= 0) { state.probe = to; state.pinned = true; refresh(); }
    });
    if (showReadings) showReadings.addEventListener("change", draw);

    let timer = null;
    const stop = () => { clearInterval(timer); timer = null; if (play) { play.textContent = "\u25b6 Play"; play.setAttribute("aria-pressed", "false"); } };
    if (slider) {
      slider.max = last;
      slider.addEventListener("input", () => { stop(); state.frame = Number(slider.value); draw(); });
      play.addEventListener("click", () => {
        if (timer) return stop();
        play.textContent = "\u23f8 Pause"; play.setAttribute("aria-pressed", "true");
        if (state.frame === last) state.frame = 0;
        draw();
        timer = setInterval(() => { if (state.frame === last) return stop(); state.frame += 1; draw(); }, 700);
      });
      const strips = () => root.querySelectorAll(".strip").forEach(strip => {
        strip.replaceChildren();
        const layer = data.layer(strip.dataset.layer);
        if (!layer) return;
        data.labels.forEach((label, frame) => {
          const button = document.createElement("button"), canvas = document.createElement("canvas");
          button.type = "button"; button.setAttribute("aria-label", `Show ${layer.title} at ${label}`);
          thumbnail(canvas, data, layer, frame);
          button.append(canvas, data.short[frame]);
          button.addEventListener("click", () => { stop(); state.layer = layer; state.frame = frame; draw(); stage.scrollIntoView({ block: "nearest" }); });
          strip.appendChild(button);
        });
      });
      strips();
      const same = find(".same-colours");
      same.checked = data.same;
      same.addEventListener("change", () => { data.same = same.checked; strips(); draw(); });
    }
    const small = document.querySelector(`canvas[data-case="${root.dataset.case}"]`);
    if (small) thumbnail(small, data, data.layers[0], last);
    let resizing = null;
    new ResizeObserver(() => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(draw); }).observe(stage.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    window.addEventListener("beforeprint", () => { state.onPaper = true; draw(); });
    window.addEventListener("afterprint", () => { state.onPaper = false; draw(); });
    draw();
  }

  document.querySelectorAll(".viewer").forEach(viewer);
  document.querySelectorAll(".cases a").forEach(link => link.addEventListener("click", () => { document.querySelector(link.hash).open = true; }));
  const openNamed = () => { const named = location.hash && document.querySelector(location.hash); if (named && "open" in named) named.open = true; };
  window.addEventListener("hashchange", openNamed); openNamed();
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(one => { one.open = true; }));
})();
