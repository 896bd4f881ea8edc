// A user's own file: what it holds, the reconstruction, and the way back to the examples.

import { call, Failure, post } from "./api.js";
import { fieldOf } from "./fields.js";
import { number, text } from "./text.js";

const POLL = 500; // milliseconds between questions how far it is

function element(name, { className = "", words = "", ...properties } = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.className = className;
  if (words) made.textContent = words;
  made.append(...children);
  return made;
}

const button = (key, act, className = "button") => {
  const made = element("button", { className, words: text(key), type: "button" });
  made.addEventListener("click", act);
  return made;
};

// A finished reconstruction on the map.
class ShownData {
  constructor(id, name, result, page) {
    Object.assign(this, { id, name, result, page, equation: result.equation, frames: new Map() });
    this.netcdf = `api/files/${id}/netcdf`;
    this.report = `api/files/${id}/report`;
  }

  get isSteady() {
    return this.result.times.length === 1;
  }

  frameAt(time) {
    return Math.round(Math.max(0, Math.min(1, time)) * (this.result.times.length - 1));
  }

  timeText(time) {
    return this.result.times[this.frameAt(time)];
  }

  // A place of the map in the file's own coordinates, fine enough for the map's width.
  placeText({ y, x }) {
    const at = ({ name, unit, low, high }, share) => {
      const digits = Math.max(0, Math.min(6, 3 - Math.ceil(Math.log10(Math.abs(high - low) || 1))));
      return `${name} ${number(low + share * (high - low), digits)}${unit && ` ${unit}`}`;
    };
    return `${at(this.result.axes.x, x)}, ${at(this.result.axes.y, y)}`;
  }

  unitOf(view) {
    return view === "source" ? this.result.source_unit : this.result.unit;
  }

  async showFrame(time) {
    const frame = this.frameAt(time);
    if (!this.frames.has(frame)) {
      const answer = await call(`api/files/${this.id}/pictures/${frame}`);
      const fields = Object.fromEntries(Object.entries(answer.layers).map(([key, layer]) => [key, fieldOf(layer)]));
      this.frames.set(frame, { ...answer, fields });
    }
    this.page.show(this.frames.get(frame));
  }
}

export class DataDialog {
  // `page` has enter, show and examples: what the page does with a result.
  constructor(dialog, page) {
    this.dialog = dialog;
    this.page = page;
    this.body = dialog.querySelector("#data-body");
    this.id = null;
    document.getElementById("open-data").addEventListener("click", () => {
      if (!this.body.childElementCount) this.askForFile();
      dialog.showModal();
    });
    document.getElementById("data-close").addEventListener("click", () => dialog.close());
    addEventListener("pagehide", () => this.id && fetch(`api/files/${this.id}`, { method: "DELETE", keepalive: true }));
  }

  fill(...children) {
    this.body.replaceChildren(...children);
  }

  async forget() {
    const id = this.id;
    this.id = null;
    if (id) await call(`api/files/${id}`, { method: "DELETE" }).catch(() => null);
  }

  async leave() {
    await this.forget();
    this.fill();
    this.page.enter(null);
  }

  askForFile(words = null) {
    const input = element("input", { type: "file", id: "data-file", accept: ".csv,.tsv,.txt,.parquet,.nc,.nc4,.cdf,.h5,.hdf5" });
    input.setAttribute("aria-label", text("data_choose"));
    const label = element("label", { className: "button", words: text("data_choose"), htmlFor: "data-file" });
    const drop = element("div", { className: "drop" }, input, label, element("span", { words: text("data_drop") }));
    input.addEventListener("change", () => input.files.length && this.send(input.files[0]));
    for (const kind of ["dragover", "dragleave", "drop"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", kind === "dragover");
        if (kind === "drop" && event.dataTransfer.files.length) this.send(event.dataTransfer.files[0]);
      });
    }
    const problem = words ? [element("p", { className: "note", words, role: "alert" })] : [];
    this.columns = element("input", { id: "data-columns", placeholder: "x=lon, y=lat, t=date, value=pm10", value: this.columns?.value ?? "" });
    const columns = element("div", { className: "form" }, element("label", { htmlFor: "data-columns", words: text("data_columns") }), this.columns);
    this.fill(...problem, element("p", { className: "lead", words: text("data_lead") }), drop, columns);
  }

  async send(file) {
    await this.forget();
    this.name = file.name;
    this.fill(element("p", { words: text("data_checking"), role: "status" }), element("progress"));
    try {
      const columns = this.columns.value.trim();
      const path = `api/files?${new URLSearchParams({ name: file.name, ...(columns && { columns }) })}`;
      const status = await call(path, { method: "POST", form: file });
      this.id = status.id;
      this.showFindings(status.checked);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.askForFile(error.message);
    }
  }

  showFindings({ findings, family, works }, words = null) {
    this.checked = { findings, family, works };
    const list = findings.map(({ kind, about, text: said }) => {
      const isWarning = kind === "doubt" || kind === "obstacle";
      const head = isWarning ? text(`data_${kind}`) : about;
      return element("li", { className: isWarning ? "warning" : "" }, ...(head ? [element("b", { words: head })] : []), element("span", { words: said }));
    });
    const families = [...new Map(this.page.examples().map((one) => [one.family, one.equation]))];
    const pde = element("select", { id: "data-pde" }, ...families.map(([name, equation]) => new Option(`${name.replaceAll("_", " ")}: ${equation}`, name)));
    if (family) pde.value = family;
    const noise = element("input", { id: "data-noise", type: "number", min: 0, step: "any", placeholder: text("data_noise_unknown") });
    const form = element(
      "div",
      { className: "form" },
      element("label", { htmlFor: "data-pde", words: text("data_pde") }), pde,
      element("label", { htmlFor: "data-noise", words: text("data_noise") }), noise,
    );
    const start = button("data_reconstruct", () => this.reconstruct(pde.value, Number(noise.value) > 0 ? Number(noise.value) : null));
    start.id = "data-start";
    start.disabled = !works;
    const again = button("data_again", () => this.forget().then(() => this.askForFile()), "button quiet");
    this.fill(
      ...(words ? [element("p", { className: "note", words, role: "alert" })] : []),
      element("h3", { words: text("data_found") }),
      element("ul", { className: "findings", id: "findings" }, ...list),
      form,
      element("div", { className: "row wrap" }, start, again),
    );
  }

  async reconstruct(family, noise) {
    const words = element("p", { role: "status", id: "data-progress" });
    const cancel = button("data_cancel", () => this.forget().then(() => this.askForFile(text("data_cancelled"))), "button quiet");
    cancel.id = "data-cancel";
    this.fill(words, element("progress"), element("div", { className: "row" }, cancel));
    const id = this.id;
    try {
      let status = await post(`api/files/${id}/reconstruction`, { family, noise_std: noise });
      while (this.id === id && ["queued", "running"].includes(status.state)) {
        const phase = text(`phase_${status.state === "queued" ? "queued" : status.phase}`);
        words.textContent = text("data_running", { phase, seconds: Math.round(status.seconds) });
        await new Promise((resolve) => setTimeout(resolve, POLL));
        if (this.id === id) status = await call(`api/files/${id}`);
      }
      if (this.id !== id) return;
      if (status.state === "done") this.finish(status.result);
      else this.showFindings(this.checked, status.problem);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (this.id === id) this.showFindings(this.checked, error.message);
    }
  }

  finish(result) {
    const shown = new ShownData(this.id, this.name, result, this.page);
    const link = (key, href) => element("a", { className: "button quiet", words: text(key), href, download: "" });
    const show = button("data_show", () => this.dialog.close());
    show.id = "data-show";
    this.fill(
      element("p", { words: text("data_done", { seconds: Math.round(result.seconds) }), role: "status" }),
      element(
        "div",
        { className: "row wrap" },
        show,
        link("data_netcdf", shown.netcdf),
        link("data_report", shown.report),
        button("data_again", () => this.leave().then(() => this.askForFile()), "button quiet"),
      ),
    );
    this.page.enter(shown);
  }
}
