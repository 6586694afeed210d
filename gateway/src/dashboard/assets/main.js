// The page: a stream fills the fleet, the map draws it, lists show what it means.

import { ask } from "./gateway.js";
import { button, element, swatch } from "./elements.js";
import { Fleet, LABELS, naturally, STATES } from "./fleet.js";
import { MachineMap } from "./map.js";
import { NodePanel } from "./node.js";
import { SessionList } from "./sessions.js";
import { follow } from "./stream.js";
import { TableView } from "./tables.js";
import { renderTroubles } from "./troubles.js";

/** Least time between two renderings of the lists; the map has its own pace. */
const LISTS = 250;

/** Time between two checks of the parts. */
const PARTS = 10_000;

const MOST_FOUND = 20;

const at = id => document.getElementById(id);

const fleet = new Fleet();
const map = new MachineMap(at("map"), fleet, open);
const panel = new NodePanel(at("node"), fleet, () => open(null));
const sessions = new SessionList(at("sessions"), fleet, confirmed);
const tables = { hosts: new TableView("hosts"), devices: new TableView("devices") };

/** Shows a node, by way of the address, so that the page can be linked and left by the back button. */
function open(id) {
  location.hash = id ? `#nodes/${encodeURIComponent(id)}` : "#nodes";
}

function route() {
  const [view, id] = location.hash.slice(1).split("/");
  const shown = view in tables ? view : "nodes";
  for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== shown;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const [name, table] of Object.entries(tables)) name === shown ? table.show() : table.hide();
  const node = shown === "nodes" && id ? decodeURIComponent(id) : null;
  map.choose(node);
  panel.show(node);
}

let waiting = false;

function listsChanged() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    renderLists();
  }, LISTS);
}

function renderLists() {
  renderCounts();
  sessions.render();
  renderTroubles(at("troubles"), fleet, open);
}

const filters = new Map();

function makeCounts() {
  for (const state of STATES) {
    const count = element("b", {}, "0");
    const choose = button("", () => filterBy(state), { "aria-pressed": "false", "data-count": state });
    choose.append(swatch(state), ` ${LABELS[state]} `, count);
    filters.set(state, { choose, count });
    at("counts").append(element("li", {}, choose));
  }
}

function renderCounts() {
  for (const [state, { choose, count }] of filters) {
    count.textContent = fleet.counts[state].toLocaleString();
    choose.parentElement.hidden = !fleet.counts[state] && map.filter !== state;
  }
  const told = STATES.filter(state => fleet.counts[state]).map(state => `${fleet.counts[state]} ${LABELS[state]}`);
  at("map").setAttribute("aria-label", `Map of ${fleet.nodes.size} nodes: ${told.join(", ") || "none"}`);
}

/** Dims all nodes but those of a state; again: shows all. */
function filterBy(state) {
  map.filter = map.filter === state ? null : state;
  for (const [one, { choose }] of filters) choose.setAttribute("aria-pressed", String(map.filter === one));
  map.draw();
  renderCounts();
}

/** Asks before something is done. Returns the reason, or null to leave it. */
function confirmed({ title, text, act, asksReason }) {
  const dialog = at("confirm");
  const field = dialog.querySelector("input");
  at("confirm-title").textContent = title;
  dialog.querySelector("p").textContent = text;
  dialog.querySelector("label").hidden = !asksReason;
  dialog.querySelector(".strong").textContent = act;
  field.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise(resolve => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? field.value : null), { once: true });
  });
}

function searched() {
  const text = at("search").elements.id.value.trim().toLowerCase();
  if (!text) return [];
  const found = [];
  for (const id of fleet.nodes.keys()) {
    if (id.toLowerCase().includes(text)) found.push(id);
    if (found.length > 5 * MOST_FOUND) break;
  }
  return found.sort((a, b) => Number(b.toLowerCase() === text) - Number(a.toLowerCase() === text) || naturally(a, b)).slice(0, MOST_FOUND);
}

function listen() {
  addEventListener("hashchange", route);
  addEventListener("keydown", event => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) open(null);
  });
  addEventListener("unhandledrejection", event => say("broken", event.reason?.message ?? String(event.reason)));
  at("search").addEventListener("input", () => at("found").replaceChildren(...searched().map(id => element("option", { value: id }))));
  at("search").addEventListener("submit", event => {
    event.preventDefault();
    const [first] = searched();
    if (first) open(first);
  });
  at("description").href = new URL("../ui/", location.href).href;
}

function take(events) {
  for (const event of events) {
    const id = fleet.take(event);
    if (id) panel.changed(id);
    if (event.name === "synced" && event.data.resource === "component") document.body.dataset.synced = "true";
  }
  map.draw();
  listsChanged();
}

let brokenSince = null;

/** Says whether the page shows the present, or since when it does not. */
function say(state, why) {
  brokenSince = state === "live" ? null : (brokenSince ?? new Date());
  at("connection").dataset.state = state;
  at("connection").textContent = state === "live" ? "live" : `not live since ${brokenSince.toLocaleTimeString()}: ${why}`;
}

async function checkParts() {
  try {
    const answer = await ask("/readyz?verbose");
    const parts = Object.entries(await answer.json());
    at("parts").replaceChildren(...parts.flatMap(([part, word]) => [element("dt", {}, part), element("dd", {}, word)]));
  } catch (error) {
    at("parts").replaceChildren(element("dt", {}, "gateway"), element("dd", {}, error.message));
  }
}

/** Lets the durations of running sessions grow. */
function tick() {
  if ([...fleet.sessions.values()].some(session => session.progress !== "complete")) listsChanged();
}

makeCounts();
listen();
route();
renderLists();
checkParts();
setInterval(checkParts, PARTS);
setInterval(tick, 1000);
follow("/reveille/v1/live?kind=component,session", take, say);
