// The server's JSON interface.

import { text } from "./text.js";

export class Failure extends Error {}

export async function call(path, { method = "GET", body, form, signal } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      body: form ?? (body === undefined ? undefined : JSON.stringify(body)),
      headers: body === undefined ? {} : { "content-type": "application/json" },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(text("offline"));
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (response.ok) return answer;
  const detail = answer?.detail;
  throw new Failure(text("failed", { reason: typeof detail === "string" ? detail : `HTTP ${response.status}` }));
}

export const post = (path, body) => call(path, { method: "POST", body });

// One question at a time; of those that come meanwhile only the last is asked.
export class Latest {
  constructor(ask) {
    this.ask = ask;
    this.running = false;
    this.next = null;
  }

  async put(question) {
    this.next = question;
    if (this.running) return;
    this.running = true;
    try {
      while (this.next !== null) {
        const asked = this.next;
        this.next = null;
        await this.ask(asked);
      }
    } finally {
      this.running = false;
    }
  }

  get isBusy() {
    return this.running;
  }
}
