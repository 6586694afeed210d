// Elements of the page. Texts are set as text and never as markup, so that nothing that a node reports can run here.

/** Makes an element with properties, attributes (names with a hyphen) and children; absent children are left out. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (key.includes("-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

/** A square in the colour of a state. */
export function swatch(state) {
  return element("span", { className: "swatch", "data-state": state, "aria-hidden": "true" });
}

/** A button that calls `act`. */
export function button(text, act, properties = {}) {
  return element("button", { type: "button", textContent: text, onclick: act, "data-key": text, ...properties });
}

/** Time from the end of a touch to its click. */
const TAP = 300;

/** What places are to show once the pointer is up; null while nothing is pressed. */
let heldBack = null;

let ending;

addEventListener("pointerdown", event => {
  if (!event.isPrimary || event.button !== 0) return;
  clearTimeout(ending);
  heldBack ??= new Map();
}, { capture: true });
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, { capture: true });
// The end of a press that another window or a menu got.
addEventListener("pointermove", event => { if (event.buttons === 0) release(event); }, { capture: true });
addEventListener("blur", release);

/** The click follows the end of the press, and belongs to what was shown until then. */
function release(event) {
  if (!heldBack) return;
  clearTimeout(ending);
  ending = setTimeout(showHeldBack, event.pointerType === "mouse" ? 0 : TAP);
}

function showHeldBack() {
  const places = heldBack;
  heldBack = null;
  places.forEach((nodes, place) => show(place, nodes));
}

/**
 * Makes a place show these nodes. An element that was there before is kept and brought up to date, so that the focus and
 * a selection outlast it. Elements are the same if their `data-key` is, or, without one, their place: what can be pressed
 * and may change its place has a key, and so has all that it is in. While the pointer is down nothing changes, so that a
 * press ends on what it began on.
 */
export function renew(place, nodes) {
  if (heldBack) heldBack.set(place, nodes);
  else show(place, nodes);
}

function show(place, nodes) {
  const before = new Map([...place.childNodes].map((node, index) => [identity(node, index), node]));
  const shown = nodes.map((node, index) => updated(before.get(identity(node, index)), node));
  const kept = new Set(shown);
  for (const node of [...place.childNodes]) if (!kept.has(node)) node.remove();
  shown.forEach((node, index) => {
    if (place.childNodes[index] !== node) place.insertBefore(node, place.childNodes[index] ?? null);
  });
}

function identity(node, index) {
  return `${node.nodeName} ${node.dataset?.key ?? index}`;
}

/** The node of before with the content of the fresh one; the fresh one if there was none. */
function updated(node, fresh) {
  if (!node) return fresh;
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== fresh.data) node.data = fresh.data;
    return node;
  }
  // What a person has opened stays open.
  if (node.nodeName === "DETAILS") fresh.open = node.open;
  for (const name of node.getAttributeNames()) if (!fresh.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of fresh.attributes) {
    if (node.getAttribute(name) === value) continue;
    // The page may not have styles in its markup, which this attribute counts as when it is set.
    if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value);
  }
  node.onclick = fresh.onclick;
  show(node, [...fresh.childNodes]);
  return node;
}

/** A list of terms with their values; those without a value are left out. */
export function terms(pairs) {
  const list = element("dl");
  for (const [term, value] of pairs) {
    if (value === undefined || value === null || value === "") continue;
    list.append(element("dt", { textContent: term }), element("dd", {}, value));
  }
  return list;
}

/** Time of the day for today, date and time otherwise; the exact instant is its title. */
export function instant(text) {
  if (!text) return null;
  const time = new Date(text);
  if (isNaN(time)) return element("time", { textContent: text });
  const isToday = time.toDateString() === new Date().toDateString();
  const shown = isToday ? time.toLocaleTimeString() : time.toLocaleString();
  return element("time", { dateTime: text, textContent: shown, title: text });
}

/** Whole seconds as `1 h 02 min`, `3 min 04 s` or `5 s`. */
export function duration(seconds) {
  const two = number => String(number).padStart(2, "0");
  const whole = Math.max(0, Math.round(seconds));
  if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} min`;
  if (whole >= 60) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${whole} s`;
}
