// Where each node is drawn: cabinets with a row for each chassis, or rows of 32 where ids are no xnames. Pure functions.

import { naturally } from "./fleet.js";

const XNAME = /^(x\d+)(c\d+)?/;
const ROW = 32;
const LABEL = 16;
const GAP = 14;

/** Returns the cabinet and the row that an id belongs to. */
export function place(id) {
  const xname = XNAME.exec(id);
  if (xname) return { group: xname[1], row: xname[2] ?? "" };
  const group = id.replace(/\d{1,3}$/, "") || id;
  return { group, row: "" };
}

/** Sides of a node's square, each with the most nodes that it is for. */
const SIDES = [[24, 200], [18, 600], [12, 3000], [8, 12000], [5, Infinity]];

/** Distance from one square to the next. */
function pitchOf(size) {
  return size + (size > 8 ? 3 : 1);
}

/** The largest side for so many nodes with which a row of `longest` fits. */
export function sizeFor(count, longest, width) {
  const fits = ([size, most]) => count <= most && longest * pitchOf(size) + 2 * GAP <= width;
  return (SIDES.find(fits) ?? SIDES.at(-1))[0];
}

/**
 * Lays `ids` out in `width` pixels. Returns `{ groups, height, size, order, index }`: groups with their label, place and cells
 * (`{ id, x, y }`), all ids in reading order, and the cell of each id.
 */
export function layOut(ids, width) {
  const machine = grouped(ids);
  const longest = Math.max(0, ...machine.map(group => Math.max(...group.rows.map(row => row.length))));
  const size = sizeFor(ids.length, longest, width);
  const groups = machine.map(group => shape(group, pitchOf(size)));
  const height = flow(groups, width);
  const order = [];
  const index = new Map();
  for (const group of groups) {
    for (const cell of group.cells) {
      cell.x += group.x;
      cell.y += group.y;
      cell.at = order.push(cell.id) - 1;
      index.set(cell.id, cell);
    }
  }
  return { groups, height, size, order, index };
}

function grouped(ids) {
  const groups = new Map();
  for (const id of [...ids].sort(naturally)) {
    const { group, row } = place(id);
    if (!groups.has(group)) groups.set(group, new Map());
    const rows = groups.get(group);
    if (!rows.has(row)) rows.set(row, []);
    rows.get(row).push(id);
  }
  return [...groups].map(([label, rows]) => ({ label, rows: [...rows.values()].flatMap(folded) }));
}

/** A row that is too long goes on below. */
function folded(row) {
  const rows = [];
  for (let at = 0; at < row.length; at += ROW) rows.push(row.slice(at, at + ROW));
  return rows;
}

function shape({ label, rows }, pitch) {
  const cells = rows.flatMap((row, down) => row.map((id, right) => ({ id, x: right * pitch, y: LABEL + down * pitch })));
  const longest = Math.max(...rows.map(row => row.length));
  return { label, cells, width: Math.max(longest * pitch, 44), height: LABEL + rows.length * pitch, x: 0, y: 0 };
}

/** Places groups from left to right, and goes on below where they do not fit. Returns the height of all. */
function flow(groups, width) {
  let [x, y, line] = [GAP, GAP, 0];
  for (const group of groups) {
    if (x > GAP && x + group.width > width) [x, y, line] = [GAP, y + line + GAP, 0];
    Object.assign(group, { x, y });
    x += group.width + GAP;
    line = Math.max(line, group.height);
  }
  return y + line + GAP;
}
