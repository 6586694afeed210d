// Rollout of a session: a strip of its batches, and a sentence on how far it is.

import { element, instant } from "./elements.js";

/** Most batches with a cell each: at its least width, so many fit the narrowest card. */
const MOST_CELLS = 40;

/** Words and colour of each progress of a batch, in the order of a merged strip. */
const PROGRESS = {
  met: { word: "met", state: "stable" },
  waived: { word: "missed and waived", state: "held" },
  missed: { word: "missed", state: "failed" },
  open: { word: "open", state: "starting" },
  closed: { word: "closed", state: "idle" },
};

/** Progress that only a later version knows. */
const UNKNOWN = { word: "in a state unknown to this page", state: "idle" };

/** Words for batches that a complete session left behind. */
const LEFT = { open: "open at the end", closed: "never opened" };

function formOf(progress) {
  return PROGRESS[progress] ?? UNKNOWN;
}

/** Tells whether a missed batch keeps the next one closed until a person decides. */
export function awaitsDecision({ progress, cancellation, pause, rollout }) {
  if (progress === "complete" || cancellation || !pause || !rollout || rollout.policy.on_miss === "stop") return false;
  return rollout.batches.some(batch => batch.progress === "missed");
}

/** Renders the batches and the sentence; nothing before the members are known. */
export function rolloutElements(session, standing) {
  const { rollout } = session;
  if (!rollout?.batches.length) return [];
  const sentence = sentenceOn(session, standing);
  const parts = rollout.batches.length > MOST_CELLS ? mergedParts(rollout.batches) : rollout.batches.map(batchCell);
  const strip = element("div", { className: "batches", "data-key": "batches", role: "img", "aria-label": sentence }, ...parts);
  return [strip, element("span", { className: "quiet", "data-key": "rollout" }, sentence)];
}

function batchCell({ members, progress, opened_at: openedAt }, index) {
  const opened = openedAt ? `, opened at ${instant(openedAt).textContent}` : "";
  return cell(progress, members, `batch ${index + 1}: ${nodes(members)}, ${formOf(progress).word}${opened}`);
}

/** Shows one part for each progress, as wide as its share of the batches. */
function mergedParts(batches) {
  return [...tally(batches)].map(([progress, count]) => cell(progress, count, `${count} of ${batches.length} batches ${formOf(progress).word}`));
}

function cell(progress, width, title) {
  const made = element("i", { "data-progress": progress, "data-state": formOf(progress).state, title });
  made.style.flexGrow = width;
  return made;
}

/** Counts the batches of each progress that any has. */
function tally(batches) {
  const counts = new Map(Object.keys(PROGRESS).map(progress => [progress, 0]));
  for (const { progress } of batches) counts.set(progress, (counts.get(progress) ?? 0) + 1);
  return new Map([...counts].filter(([, count]) => count > 0));
}

function sentenceOn({ progress, pause, rollout }, standing) {
  if (progress === "complete") return ending(rollout.batches);
  if (!standing) return latest(rollout);
  // A paused session opens no batch at the end of its soak.
  return standing.waits_for === "soak" && !pause ? soaking(rollout, standing) : standing.text;
}

function ending(batches) {
  const told = [...tally(batches)].map(([progress, count]) => `${count} ${LEFT[progress] ?? formOf(progress).word}`);
  return `${batches.length} ${batches.length === 1 ? "batch" : "batches"}: ${told.join(", ")}`;
}

/** Words without the counts of members, which the live stream does not have. */
function latest({ batch, batches }) {
  if (batch === 0) return `none of ${batches.length} batches is open yet`;
  return `batch ${batch} of ${batches.length} is ${formOf(batches[batch - 1].progress).word}`;
}

/** Words with the end of the soak on the clock of the reader; the gateway writes it in UTC. */
function soaking({ batch, batches }, { succeeded, failed, under_way: underWay, until }) {
  const counts = [[succeeded, "as wanted"], [failed, "failed"], [underWay, "under way"]];
  const told = counts.filter(([count]) => count > 0).map(([count, word]) => `, ${count} ${word}`);
  return `batch ${batch} of ${batches.length} is met${told.join("")}; the next one follows at ${instant(until).textContent} after the soak`;
}

function nodes(count) {
  return `${count} ${count === 1 ? "node" : "nodes"}`;
}
