// Server-sent events, read by fetch because an EventSource cannot carry a token.

import { ask, Refusal, refusal } from "./gateway.js";

const LONGEST_WAIT = 15_000;

/**
 * Follows a stream for ever and resumes it where it broke.
 *
 * `take(events)` gets the events of each piece that arrives, as `{ name, data }`; `state(word, text)` learns whether the
 * stream is `live` or `broken`, and why.
 */
export async function follow(path, take, state) {
  let place = "";
  let wait = 500;
  for (;;) {
    try {
      const answer = await ask(path, { headers: place ? { "last-event-id": place } : {} });
      if (!answer.ok) throw await refusal(answer);
      state("live", "");
      wait = 500;
      if (!place) take([{ name: "reset", data: null }]);
      for await (const { events, last } of pieces(answer.body)) {
        if (events.length) take(events);
        place = last || place;
      }
      state("broken", "the stream ended");
    } catch (error) {
      state("broken", error.message);
      // A place that the gateway no longer knows is of no use: the next stream begins with everything.
      if (error instanceof Refusal && error.status < 500) place = "";
    }
    await new Promise(resolve => setTimeout(resolve, wait * (0.5 + Math.random())));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

async function* pieces(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const end = rest.lastIndexOf("\n\n");
    if (end < 0) continue;
    const whole = rest.slice(0, end);
    rest = rest.slice(end + 2);
    yield parse(whole);
  }
}

/** Parses whole events; `last` is the place after them. */
export function parse(text) {
  const events = [];
  let last = "";
  for (const block of text.split("\n\n")) {
    let name = "message";
    let data = "";
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      const value = line.slice(colon + 1).replace(/^ /, "");
      if (line.startsWith("event:")) name = value;
      else if (line.startsWith("data:")) data += data ? "\n" + value : value;
      else if (line.startsWith("id:")) last = value;
    }
    if (data) events.push({ name, data: JSON.parse(data) });
  }
  return { events, last };
}
