// Panel of one node: why it is as it is, what to do next, what it runs, what happened to it.

import { call } from "./gateway.js";
import { button, element, instant, renew, swatch, terms } from "./elements.js";
import { LABELS } from "./fleet.js";

const ENTRIES = 25;

/** Least time between two readings of the same node. */
const REST = 1500;

export class NodePanel {
  constructor(place, fleet, close) {
    this.place = place;
    this.fleet = fleet;
    this.close = close;
    this.id = null;
    this.timer = null;
  }

  async show(id) {
    this.id = id;
    clearTimeout(this.timer);
    this.timer = null;
    this.place.hidden = !id;
    if (!id) return this.place.replaceChildren();
    this.place.setAttribute("aria-label", `Node ${id}`);
    await this.read();
  }

  /** The node has changed: it is read again, after a rest. */
  changed(id) {
    if (id !== this.id || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.read();
    }, REST);
  }

  async read() {
    const id = this.id;
    const name = encodeURIComponent(id);
    const answers = await Promise.allSettled([
      call(`/reveille/v1/explain/components/${name}`),
      call(`/v2/components/${name}`),
      call(`/reveille/v1/timeline?resource=component&name=${name}&limit=${ENTRIES}`),
    ]);
    if (id !== this.id) return;
    renew(this.place, [this.head(id), ...why(answers[0]), ...runs(answers[1]), ...history(answers[2])]);
  }

  head(id) {
    const state = this.fleet.nodes.get(id)?.state ?? "idle";
    const title = element("h2", {}, swatch(state), ` ${id} `, element("span", { className: "quiet" }, LABELS[state]));
    return element("div", { className: "row" }, title, button("Close", this.close));
  }
}

function failed(what, answer) {
  return [element("p", { className: "quiet" }, `${what}: ${answer.reason.message}`)];
}

function why(answer) {
  if (answer.status === "rejected") return failed("No explanation", answer);
  const told = answer.value;
  const shown = [element("p", { className: "sentence" }, told.sentence)];
  shown.push(element("p", {}, told.next_step.text));
  if (told.next_step.command) shown.push(command(told.next_step.command));
  const causes = told.causes.slice(1).map(cause => element("li", {}, cause.sentence, cause.words ? ` (${cause.words})` : ""));
  if (causes.length) shown.push(element("h3", {}, "Further causes"), element("ol", {}, ...causes));
  const evidence = told.evidence.map(one => [one.source.replaceAll("_", " "), `${one.content}${age(one)}`]);
  shown.push(element("details", {}, element("summary", {}, "Evidence"), terms(evidence)));
  return shown;
}

function age(evidence) {
  return evidence.age_seconds === undefined ? "" : `, ${evidence.age_seconds} s ago`;
}

function command(text) {
  return element("code", { className: "command", tabIndex: 0, textContent: text });
}

function runs(answer) {
  if (answer.status === "rejected") return failed("No record", answer);
  const { desired_state: wanted, actual_state: actual, session, enabled, last_action: last } = answer.value;
  const image = state => state?.boot_artifacts?.kernel;
  return [element("h3", {}, "Runs"), terms([
    ["kernel", image(actual) || "not reported"],
    ["wanted kernel", image(wanted) === image(actual) ? "" : image(wanted)],
    ["parameters", wanted?.boot_artifacts?.kernel_parameters],
    ["configuration", wanted?.configuration],
    ["session", session],
    ["enabled", enabled ? "yes" : "no"],
    ["last action", last?.action],
  ])];
}

function history(answer) {
  if (answer.status === "rejected") return failed("No timeline", answer);
  const entries = answer.value.entries.map(entry => element("li", {},
    instant(entry.time), " ", entry.kind.replaceAll("_", " "), entry.reason ? ` (${entry.reason.replaceAll("_", " ")})` : "",
    entry.text ? `: ${entry.text}` : "", element("span", { className: "quiet" }, ` ${entry.actor}`)));
  return [element("h3", {}, "Timeline"), entries.length ? element("ol", {}, ...entries) : element("p", { className: "quiet" }, "Nothing on record.")];
}
