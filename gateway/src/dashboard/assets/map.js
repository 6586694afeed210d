// The machine map: only what is in sight is drawn, at most once a frame, so its cost does not grow with the machine.

import { LABELS, STATES } from "./fleet.js";
import { layOut } from "./layout.js";

/** Smallest square with a mark in it. */
const MARKED = 8;

export class MachineMap {
  /** `open(id)` is called when a person chooses a node. */
  constructor(place, fleet, open) {
    this.place = place;
    this.fleet = fleet;
    this.open = open;
    this.canvas = place.querySelector("canvas");
    this.extent = place.querySelector(".extent");
    this.brush = this.canvas.getContext("2d", { alpha: false });
    this.filter = null;
    this.pointed = null;
    this.chosen = null;
    this.version = -1;
    this.restUntil = 0;
    this.asked = false;
    this.frames = 0;
    this.listen();
    this.readColours();
  }

  listen() {
    new ResizeObserver(() => this.draw()).observe(this.place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readColours(); this.draw(); });
    this.place.addEventListener("scroll", () => this.draw());
    this.place.addEventListener("pointermove", event => this.hover(event));
    this.place.addEventListener("pointerleave", () => this.hint(null));
    this.place.addEventListener("click", event => {
      const cell = this.cellAt(event);
      if (cell) this.open(cell.id);
    });
    this.place.addEventListener("keydown", event => this.key(event));
  }

  readColours() {
    const probe = document.createElement("i");
    document.body.append(probe);
    const colour = name => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    this.colours = Object.fromEntries([...STATES, "ink", "card", "quiet", "link"].map(name => [name, colour(name)]));
    probe.remove();
  }

  /** Asks for a drawing with the next frame. */
  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.paint();
    });
  }

  /** Lays the nodes out anew if they or the width changed; while a large machine arrives, for a tenth of the time at most. */
  arrange() {
    const width = this.place.clientWidth;
    if (this.version === this.fleet.layout && this.plan?.width === width) return;
    const began = performance.now();
    if (this.plan && began < this.restUntil) return this.draw();
    this.version = this.fleet.layout;
    this.plan = { ...layOut([...this.fleet.nodes.keys()], width), width };
    const ended = performance.now();
    this.restUntil = ended + 10 * (ended - began);
  }

  paint() {
    this.arrange();
    const { clientWidth: width, clientHeight: height } = this.place;
    if (!width || !height) return;
    const scale = devicePixelRatio;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.extent.style.height = `${Math.max(0, this.plan.height - height)}px`;
    const top = this.place.scrollTop;
    this.brush.setTransform(scale, 0, 0, scale, 0, 0);
    this.brush.fillStyle = this.colours.card;
    this.brush.fillRect(0, 0, width, height);
    this.brush.translate(0, -top);
    const inSight = this.plan.groups.filter(group => group.y + group.height >= top && group.y <= top + height);
    this.labels(inSight);
    this.cells(inSight);
    this.frame(this.chosen, this.colours.link, 3);
    this.frame(this.pointed, this.colours.ink, 2);
    this.frames++;
  }

  labels(groups) {
    this.brush.fillStyle = this.colours.quiet;
    this.brush.font = "11px system-ui, sans-serif";
    for (const group of groups) this.brush.fillText(group.label, group.x, group.y + 10);
  }

  /** Squares of one colour are drawn together. */
  cells(groups) {
    const byState = Object.fromEntries(STATES.map(state => [state, []]));
    for (const group of groups) {
      for (const cell of group.cells) byState[this.fleet.nodes.get(cell.id)?.state ?? "idle"].push(cell);
    }
    const { size } = this.plan;
    for (const state of STATES) {
      this.brush.globalAlpha = this.filter && this.filter !== state ? 0.15 : 1;
      this.brush.fillStyle = this.colours[state];
      for (const { x, y } of byState[state]) this.brush.fillRect(x, y, size, size);
      if (size >= MARKED) this.mark(state, byState[state], size);
    }
    this.brush.globalAlpha = 1;
  }

  /** Marks what must be seen without colours: a cross in failed nodes, a bar in those on hold. */
  mark(state, cells, size) {
    if (state !== "failed" && state !== "held") return;
    this.brush.strokeStyle = this.colours.card;
    this.brush.lineWidth = size / 8;
    this.brush.beginPath();
    const [near, far, half] = [size * 0.25, size * 0.75, size / 2];
    for (const { x, y } of cells) {
      if (state === "held") {
        this.brush.moveTo(x + near, y + half);
        this.brush.lineTo(x + far, y + half);
        continue;
      }
      this.brush.moveTo(x + near, y + near);
      this.brush.lineTo(x + far, y + far);
      this.brush.moveTo(x + far, y + near);
      this.brush.lineTo(x + near, y + far);
    }
    this.brush.stroke();
  }

  frame(id, colour, width) {
    const cell = id && this.plan.index.get(id);
    if (!cell) return;
    this.brush.strokeStyle = colour;
    this.brush.lineWidth = width;
    this.brush.strokeRect(cell.x - 1, cell.y - 1, this.plan.size + 2, this.plan.size + 2);
  }

  cellAt(event) {
    if (!this.plan) return null;
    const box = this.place.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top + this.place.scrollTop;
    const { size } = this.plan;
    const group = this.plan.groups.find(one => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height);
    return group?.cells.find(cell => x >= cell.x && x < cell.x + size && y >= cell.y && y < cell.y + size) ?? null;
  }

  hover(event) {
    const cell = this.cellAt(event);
    this.place.style.cursor = cell ? "pointer" : "";
    this.hint(cell && { id: cell.id, x: event.clientX, y: event.clientY });
  }

  hint(at) {
    const tip = document.getElementById("tip");
    tip.hidden = !at;
    if (!at) return;
    tip.textContent = this.describe(at.id);
    tip.style.left = `${Math.min(at.x + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(at.y + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  /** Node in one line. */
  describe(id) {
    const node = this.fleet.nodes.get(id);
    if (!node) return id;
    return [`${id}: ${LABELS[node.state]}`, node.error, node.session && `session ${node.session}`].filter(Boolean).join(" · ");
  }

  key(event) {
    if (!this.plan?.order.length) return;
    const { order, index } = this.plan;
    const at = index.get(this.pointed ?? this.chosen)?.at;
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (event.key in steps) this.point(order[Math.min(order.length - 1, Math.max(0, (at ?? -1) + steps[event.key]))]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.point(this.beside(at ?? 0, event.key === "ArrowDown"));
    else if (event.key === "Home") this.point(order[0]);
    else if (event.key === "End") this.point(order.at(-1));
    else if (event.key === "Enter" && this.pointed) this.open(this.pointed);
    else return;
    event.preventDefault();
  }

  /** The nearest node in the next row below or above. */
  beside(at, isBelow) {
    const { order, index } = this.plan;
    const from = index.get(order[at]);
    let best = from;
    let least = Infinity;
    for (const cell of index.values()) {
      const down = isBelow ? cell.y - from.y : from.y - cell.y;
      if (down <= 0) continue;
      const distance = down * 4 + Math.abs(cell.x - from.x);
      if (distance < least) [best, least] = [cell, distance];
    }
    return best.id;
  }

  point(id) {
    this.pointed = id;
    document.getElementById("pointed").textContent = this.describe(id);
    this.show(id);
  }

  /** Scrolls to a node. */
  show(id) {
    this.arrange();
    const cell = this.plan.index.get(id);
    if (!cell) return;
    const { scrollTop: top, clientHeight: height } = this.place;
    if (cell.y < top || cell.y + this.plan.size > top + height) this.place.scrollTop = cell.y - height / 2;
    this.draw();
  }

  /** Marks the node that the panel shows. */
  choose(id) {
    this.chosen = id;
    if (id) this.show(id);
    this.draw();
  }
}
