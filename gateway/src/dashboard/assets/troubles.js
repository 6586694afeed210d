// Nodes with an error, grouped by its text: a trouble of five hundred nodes is one line.

import { button, element, renew, swatch } from "./elements.js";
import { naturally } from "./fleet.js";

const MOST_TROUBLES = 20;
const MOST_MEMBERS = 6;

export function renderTroubles(place, fleet, open) {
  const groups = [...fleet.troubles].sort((a, b) => b[1].size - a[1].size || a[0].localeCompare(b[0]));
  const cards = groups.slice(0, MOST_TROUBLES).map(([text, ids]) => card(text, ids, fleet, open));
  if (groups.length > MOST_TROUBLES) cards.push(element("li", { className: "quiet" }, `${groups.length - MOST_TROUBLES} more troubles`));
  if (!cards.length) cards.push(element("li", { className: "quiet" }, "No node reports an error."));
  renew(place, cards);
}

function card(text, ids, fleet, open) {
  const some = [...ids].sort(naturally);
  const hasFailed = some.some(id => fleet.nodes.get(id)?.state === "failed");
  const members = some.slice(0, MOST_MEMBERS).map(id => button(id, () => open(id)));
  if (some.length > MOST_MEMBERS) members.push(element("span", { className: "quiet" }, `and ${some.length - MOST_MEMBERS} more`));
  const nodes = `${some.length} ${some.length === 1 ? "node" : "nodes"}`;
  return element("li", { "data-key": text },
    element("div", { className: "row" }, element("span", {}, swatch(hasFailed ? "failed" : "held"), " ", text), element("span", { className: "quiet" }, nodes)),
    element("div", { className: "members" }, ...members));
}
