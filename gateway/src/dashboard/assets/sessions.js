// Sessions with their progress, and the hands that an operator has on them.

import { call } from "./gateway.js";
import { button, duration, element, renew } from "./elements.js";
import { keyOf, LABELS, STATES } from "./fleet.js";
import { awaitsDecision, rolloutElements } from "./rollout.js";
import { SessionReadings } from "./readings.js";

/** Most sessions in the list: all that run, and the newest of the others. */
const MOST = 12;

/** Longest text of a limit. */
const LONGEST = 80;

const RESULTS = {
  succeeded: "succeeded",
  partial: "succeeded for some nodes",
  failed: "failed",
  cancelled: "cancelled",
  superseded: "superseded",
  nothing_to_do: "nothing to do",
};

/** Choice that a person has after a missed batch. */
const CHOICE = " Resume lets the next batch follow, although nodes failed; Cancel ends the session.";

/** Words of the confirmations. */
const ACTS = { cancel: "Cancel the session", pause: "Pause the session", resume: "Resume the session", retry: "Retry" };

export class SessionList {
  constructor(place, fleet, confirm) {
    this.place = place;
    this.fleet = fleet;
    this.confirm = confirm;
    this.readings = new SessionReadings(() => this.render());
  }

  render() {
    const sessions = [...this.fleet.sessions.values()].sort(urgentFirst);
    const shown = sessions.slice(0, MOST);
    this.readings.follow(shown, session => this.countsOf(session));
    const cards = shown.map(session => this.card(session));
    if (sessions.length > MOST) cards.push(element("li", { className: "quiet" }, `${sessions.length - MOST} older sessions`));
    if (!cards.length) cards.push(element("li", { className: "quiet" }, "No session yet. ", element("code", {}, "reveille boot TEMPLATE"), " begins one."));
    renew(this.place, cards);
  }

  /** Returns the nodes of a session by state. */
  countsOf(session) {
    return this.fleet.bySession.get(keyOf(session.name, session.tenant)) ?? {};
  }

  card(session) {
    const counts = this.countsOf(session);
    const head = element("div", { className: "row" }, element("b", {}, session.name), element("span", { className: "quiet" }, progress(session)));
    const subject = [session.operation, session.template_name, session.tenant && `tenant ${session.tenant}`, session.limit && `limit ${shortened(session.limit)}`, session.retry_of && `retry of ${session.retry_of}`];
    const card = element("li", { "data-session": session.name, "data-key": keyOf(session.name, session.tenant) }, head, element("span", { className: "quiet" }, subject.filter(Boolean).join(" · ")));
    if (session.members) card.append(bar(counts, session), element("span", { className: "quiet" }, sentence(counts, session)));
    card.append(...rolloutElements(session, this.readings.standingOf(session)));
    for (const text of [expectation(this.readings.estimateOf(session)), paused(session), session.error, session.waiting_for && `waits for ${session.waiting_for}`]) {
      if (text) card.append(element("span", {}, text));
    }
    if (awaitsDecision(session)) {
      card.classList.add("decision");
      card.append(element("span", { role: "alert", "data-key": "decision" }, element("strong", {}, "Decide:"), CHOICE));
    }
    const actions = this.actions(session);
    if (actions.length) card.append(element("div", { className: "actions", "data-key": "actions" }, ...actions));
    return card;
  }

  actions(session) {
    const act = (word, title, text) => button(word, () => this.steer(session, word.toLowerCase(), title, text));
    if (session.progress !== "complete") {
      if (session.cancellation) return [element("span", { className: "quiet" }, "is being cancelled")];
      const pause = session.pause
        ? act("Resume", `Resume session ${session.name}?`, afterResume(session))
        : act("Pause", `Pause session ${session.name}?`, "Nothing new begins for its nodes; what is under way ends, and no attempt is lost.");
      return [pause, act("Cancel", `Cancel session ${session.name}?`, "Its nodes are disabled and stay as they are; a power action that is under way ends by itself.")];
    }
    if (session.result !== "partial" && session.result !== "failed" && session.result !== "cancelled") return [];
    return [act("Retry", `Retry session ${session.name}?`, "A new session begins for the nodes that failed.")];
  }

  async steer(session, verb, title, text) {
    const asksReason = verb === "cancel" || verb === "pause";
    const reason = await this.confirm({ title, text, act: ACTS[verb], asksReason });
    if (reason === null) return;
    const query = new URLSearchParams();
    if (session.tenant) query.set("tenant", session.tenant);
    if (reason) query.set("reason", reason);
    await call(`/reveille/v1/sessions/${encodeURIComponent(session.name)}/${verb}?${query}`, { method: "POST" });
  }
}

/** A list of hundreds of nodes is cut. */
function shortened(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** Order of the list: what waits for a decision, what runs, what is complete; the newest of each first. */
function urgentFirst(a, b) {
  const urgency = session => Number(session.progress !== "complete") + Number(awaitsDecision(session));
  return urgency(b) - urgency(a) || b.start_time.localeCompare(a.start_time);
}

function afterResume(session) {
  if (!awaitsDecision(session)) return "Its nodes go on where they are.";
  const missed = session.rollout.batches.findIndex(batch => batch.progress === "missed") + 1;
  return `The next batch follows, although nodes of batch ${missed} failed.`;
}

function progress(session) {
  if (awaitsDecision(session)) return "waits for a decision";
  if (session.progress !== "complete") return session.progress;
  const result = RESULTS[session.result] ?? "complete";
  return session.superseded_by ? `${result} by ${session.superseded_by}` : result;
}

/** Words about the end; nothing where too little is known. */
function expectation(estimate) {
  if (!estimate) return "";
  const { likely_end: likely, late_end: late, slow_count: slow } = estimate;
  const end = likely ? `likely done in ${left(likely)}, late in ${left(late)}` : "takes longer than before";
  return slow ? `${end}; ${slow} slower than 99 of 100` : end;
}

/** Time from now until an end. */
function left(end) {
  return duration(Math.max(0, (new Date(end) - Date.now()) / 1000));
}

function paused({ pause }) {
  return pause && [`paused by ${pause.by} since ${new Date(pause.since).toLocaleTimeString()}`, pause.reason].filter(Boolean).join(": ");
}

function bar(counts, session) {
  const made = element("div", { className: "bar", "data-key": "bar", role: "img", "aria-label": sentence(counts, session) });
  for (const state of STATES) {
    if (!counts[state]) continue;
    const part = element("i", { "data-state": state });
    part.style.width = `${(100 * counts[state]) / session.members}%`;
    made.append(part);
  }
  return made;
}

function sentence(counts, session) {
  const told = STATES.filter(state => counts[state]).map(state => `${counts[state]} ${LABELS[state]}`);
  const seconds = (new Date(session.end_time ?? Date.now()) - new Date(session.start_time)) / 1000;
  const nodes = `${session.members} ${session.members === 1 ? "node" : "nodes"}`;
  return [`${nodes} in ${duration(seconds)}`, ...told].join(", ");
}

