// What the live stream does not tell about a session: the standing of its rollout, and when it is likely to end. It is read for the
// sessions in sight.

import { call } from "./gateway.js";
import { keyOf } from "./fleet.js";

/** Least time between the begins of two readings of the same session, when something has changed. */
const REST = 2000;

/** Time after which a session is read again although nothing has changed: its end comes closer, or does not. */
const AGAIN = 10_000;

/** Longest time of a reading: a request may hang, as after a sleep of the reader's machine. */
const PATIENCE = 10_000;

/** Most readings at a time: the browser has few connections to a gateway, and the stream holds one. */
const MOST_READINGS = 3;

export class SessionReadings {
  /** Calls `changed` when a reading has arrived. */
  constructor(changed) {
    this.changed = changed;
    /** Readings of the sessions in sight, by key: `{ seen, began, isReading, standing, batches, estimate }`. */
    this.known = new Map();
  }

  /**
   * Takes the sessions in sight and reads what has changed. The list is rendered at least every second while a session
   * runs, so a reading that is not due yet is made by a later call.
   */
  follow(sessions, countsOf) {
    const running = sessions.filter(isUnderWay);
    this.known = new Map(running.map(session => [keyOf(session.name, session.tenant), this.readingOf(session)]));
    for (const session of running) {
      const known = this.readingOf(session);
      const seen = JSON.stringify([session.start_time, batchesOf(session), session.rollout && countsOf(session)]);
      if (this.mayRead() && isDue(known, seen)) this.read(session, known, seen);
    }
  }

  readingOf({ name, tenant }) {
    return this.known.get(keyOf(name, tenant)) ?? { seen: "", began: -Infinity, isReading: false };
  }

  /** Returns the standing of a session, if it is known and of the batches that are shown. */
  standingOf(session) {
    const { standing, batches } = this.readingOf(session);
    return standing && batches === batchesOf(session) ? standing : undefined;
  }

  /** Returns the expected end of a session, if it is known. */
  estimateOf(session) {
    return isUnderWay(session) && !session.pause ? this.readingOf(session).estimate : undefined;
  }

  mayRead() {
    return !document.hidden && [...this.known.values()].filter(one => one.isReading).length < MOST_READINGS;
  }

  /** A failed reading leaves all of it unknown until the next one. */
  async read({ name, tenant }, known, seen) {
    Object.assign(known, { seen, began: performance.now(), isReading: true });
    const query = tenant ? `?${new URLSearchParams({ tenant })}` : "";
    try {
      const signal = AbortSignal.timeout(PATIENCE);
      const session = await call(`/reveille/v1/sessions/${encodeURIComponent(name)}${query}`, { signal });
      const { rollout, estimate } = session;
      Object.assign(known, { standing: rollout?.standing, batches: batchesOf(session), estimate });
    } catch {
      Object.assign(known, { standing: undefined, estimate: undefined });
    }
    known.isReading = false;
    this.changed();
  }
}

function isDue({ seen, began, isReading }, now) {
  const age = performance.now() - began;
  return !isReading && age >= (seen === now ? AGAIN : REST);
}

function isUnderWay({ progress, cancellation }) {
  return progress === "running" && !cancellation;
}

/** Returns the progress of all batches as one text, to compare. */
function batchesOf({ rollout }) {
  return rollout?.batches.map(batch => batch.progress).join(" ");
}
