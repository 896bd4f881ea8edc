// A user's own file: what it holds, the reconstruction, and the way back to the examples.

import { text } from "./text.js";

export class DataDialog {
  constructor(dialog, page) {
    this.dialog = dialog;
    this.page = page;
    document.getElementById("open-data").addEventListener("click", () => dialog.showModal());
    document.getElementById("data-close").addEventListener("click", () => dialog.close());
  }

  leave() {
    this.page.enter(null);
  }
}
