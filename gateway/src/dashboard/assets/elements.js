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
  return element("button", { type: "button", textContent: text, onclick: act, ...properties });
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
