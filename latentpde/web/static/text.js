// Every English sentence of the page. Elements name theirs by data-text, data-label (for screen readers) and data-hint.

export const TEXT = {
  title: "LatentPDE: the whole field from a few readings",
  name: "LatentPDE",
  tagline: "A few noisy readings, one equation, the whole field. Move a sensor and see what is known.",
  own_data: "Your own data",
  share: "Copy link",
  shared: "Link copied",
  share_failed: "Copy the address of this page",
  skip: "Skip to the map",

  views: "What the map shows",
  view_mean: "Field",
  view_std: "Uncertainty",
  view_source: "Source",
  view_start: "Start",
  view_truth: "Truth",
  view_error: "Error",
  about_mean: "The expected field, given the readings and the equation.",
  about_std: "How far off the field may be: one standard deviation.",
  about_source: "The steady source on the right-hand side of the equation.",
  about_start: "The state at time 0. Its averages over 32 × 32 cells are known.",
  about_truth: "What the sensors really measured, without noise.",
  about_error: "How far the field is from the truth.",

  stage: "Map with sensors",
  stage_help:
    "Click or press Enter to add a sensor. Drag a sensor, or move it with the arrow keys. Drag it off the map, or press Delete, to remove it.",
  stage_help_draw: "Draw with the finger, the mouse, or with the arrow keys and Enter.",
  stage_help_data: "The dots are your readings: of each place, the one nearest in time. Point at the map, or move over it with the arrow keys, to read it.",
  map_of: "{view} at time {time}, from {low} to {high}",
  place: "x {x}, y {y}",
  sensor: "Sensor {number} at {place}",
  sensor_reads: "Sensor {number} at {place}, reads {value}",
  sensor_added: "Sensor added at x {x}, y {y}",
  sensor_removed: "Sensor removed",
  too_many: "{count} sensors are as many as this page takes",
  release_to_remove: "Release to remove",
  at_point: "{place}: {value}",
  at_excluded: "{place}: excluded",

  time: "Time",
  play: "Play",
  pause: "Pause",
  time_now: "t = {time}",
  time_reading: "t = {time}, when the sensors read",
  time_forecast: "t = {time}, a forecast",
  time_steady: "Steady: the same at all times",

  tools: "Tools",
  tool: "What a click does",
  tool_sensor: "Sensors",
  tool_start: "Draw start",
  tool_source: "Draw source",
  brush: "Brush",
  brush_raise: "Raise",
  brush_lower: "Lower",
  brush_thin: "Thin",
  brush_wide: "Wide",
  blank_start: "Begin with a flat start",
  blank_source: "Begin without a source",
  best: "Best next sensor",
  best_hint: "Puts a sensor where it would tell most",
  undo: "Undo",
  redo: "Redo",
  clear: "Remove all",
  truth: "Show the truth",

  settings: "Settings",
  pde: "Equation",
  example: "Example",
  another: "Another one",
  noise: "Noise of a reading",
  resolution: "Resolution",
  colours: "Colours",
  colours_auto: "Red and blue",
  colours_viridis: "Viridis",
  colours_cividis: "Cividis",
  regime_diffusion: "Diffusion and wind",
  regime_advection: "Wind, little diffusion",
  regime_balanced: "Wind and diffusion",
  regime_forcing: "Strong sources",
  regime_klein_gordon: "Waves (Klein–Gordon)",
  regime_helmholtz: "Steady state (Helmholtz)",
  regime_decay: "Wind and decay",
  regime_screened_poisson: "Screened Poisson",
  regime_heat: "Heat",
  regime_poisson: "Poisson",
  regime_time_harmonic: "Waves of one frequency",
  regime_telegraph: "Damped waves (telegraph)",
  regime_fractional_diffusion: "Fractional diffusion",

  coefficients: "What the equation is",
  coefficient: "{meaning}: {value}",
  coefficient_truth: "{meaning}: {value}, truly {truth}",
  small_maps: "Other views",
  show_view: "Show {view}",
  sensors_count: "Sensors",
  readings_count: "Readings",
  typical_std: "Typical uncertainty",
  rmse: "Error (RMS)",
  within: "Truth within 2 sd",
  summary: "{sensors} sensors. Typical uncertainty {std}.",
  summary_truth: "{sensors} sensors. Typical uncertainty {std}. Error {rmse}.",

  failed: "No answer: {reason}",
  offline: "The server does not answer. Is it still running?",
  retry: "Try again",
  bad_link: "This link could not be read in full; the rest is the example.",

  data_title: "Your own data",
  data_lead:
    "A CSV table of readings or a NetCDF file. It stays on the computer that this page comes from, and is deleted when you close it.",
  data_choose: "Choose a file",
  data_drop: "or drop it here",
  data_columns: "Names of columns",
  data_checking: "Reading the file …",
  data_found: "What the file holds",
  data_doubt: "worth a look",
  data_obstacle: "in the way",
  data_pde: "Equation",
  data_noise: "Noise of a reading",
  data_noise_unknown: "not known",
  data_reconstruct: "Reconstruct",
  data_cancel: "Cancel",
  data_close: "Close",
  data_again: "Another file",
  data_running: "{phase}, {seconds} s so far",
  phase_queued: "Waiting for its turn",
  phase_reading: "Reading the file",
  phase_searching: "Looking for the coefficients",
  phase_decoding: "Drawing the field",
  phase_writing: "Writing the files",
  data_done: "Done in {seconds} s",
  data_show: "Show on the map",
  data_netcdf: "Download NetCDF",
  data_report: "Download report",
  data_cancelled: "Cancelled. Nothing was kept.",
  data_leave: "Back to the examples",
  footer: "Every field on this page solves the equation exactly; how sure it is was computed, not guessed.",
  api: "The same as a JSON interface",
};

export function text(key, values = {}) {
  const template = TEXT[key];
  if (template === undefined) throw new Error(`no text ${key}`);
  return template.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

export function fillTexts(root) {
  for (const element of root.querySelectorAll("[data-text]")) element.textContent = text(element.dataset.text);
  for (const element of root.querySelectorAll("[data-label]")) element.setAttribute("aria-label", text(element.dataset.label));
  for (const element of root.querySelectorAll("[data-hint]")) element.title = text(element.dataset.hint);
}

export function number(value, digits = 2) {
  const rounded = Number(value).toFixed(digits);
  return (Number(rounded) === 0 ? rounded.replace("-", "") : rounded).replace("-", "−");
}

// A value with its standard deviation, both to the second digit of the latter.
export function withStd(mean, std) {
  if (!(std > 0) || !Number.isFinite(std)) return short(mean);
  const digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(std))));
  return `${number(mean, digits)} ± ${number(std, digits)}`;
}

export function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100000)) return value.toExponential(1).replace("-", "−");
  return Number(value.toPrecision(size >= 1000 ? 4 : 3)).toString().replace("-", "−");
}
