// The fleet as the live stream tells it: nodes by id, sessions by name, and counts of both that follow every change.

/** States in which a node is drawn, the worst last. */
export const STATES = ["stable", "configuring", "starting", "stopping", "idle", "held", "failed"];

/** State of a node in words. */
export const LABELS = {
  stable: "stable",
  configuring: "configuring",
  starting: "powering on",
  stopping: "powering off",
  idle: "nothing wanted",
  held: "on hold",
  failed: "failed",
};

const STATE_OF_STATUS = {
  stable: "stable",
  configuring: "configuring",
  power_on_pending: "starting",
  power_on_called: "starting",
  power_off_pending: "stopping",
  power_off_gracefully_called: "stopping",
  power_off_forcefully_called: "stopping",
  on_hold: "held",
  failed: "failed",
};

export function stateOf(node) {
  return STATE_OF_STATUS[node.status] ?? "idle";
}

export function keyOf(name, tenant = "") {
  return `${tenant}\t${name}`;
}

/** Order in which `x9` comes before `x10`. */
export const naturally = new Intl.Collator("en", { numeric: true }).compare;

export class Fleet {
  constructor() {
    this.clear();
  }

  clear() {
    this.nodes = new Map();
    this.sessions = new Map();
    this.counts = Object.fromEntries(STATES.map(state => [state, 0]));
    /** Nodes by state of each session that has any. */
    this.bySession = new Map();
    /** Nodes by the text of their error. */
    this.troubles = new Map();
    /** Raised when nodes come or go, so that the map is laid out again. */
    this.layout = (this.layout ?? 0) + 1;
  }

  /** Takes one event of the stream; returns the id of the node that changed, if it was one. */
  take({ name, data }) {
    switch (name) {
      case "component": return this.put(data);
      case "session": this.sessions.set(keyOf(data.name, data.tenant), data); return null;
      case "deleted": return this.remove(data);
      case "reset": this.reset(data); return null;
      default: return null;
    }
  }

  reset(data) {
    if (!data) return this.clear();
    const sessions = this.sessions;
    const { nodes } = this;
    if (data.resource === "session") return sessions.clear();
    if (data.resource !== "component") return;
    for (const id of [...nodes.keys()]) this.remove({ resource: "component", name: id });
  }

  put(node) {
    const before = this.nodes.get(node.id);
    if (before) this.count(before, -1);
    else this.layout++;
    node.state = stateOf(node);
    this.nodes.set(node.id, node);
    this.count(node, 1);
    return node.id;
  }

  remove({ resource, name, tenant }) {
    if (resource === "session") {
      this.sessions.delete(keyOf(name, tenant));
      return null;
    }
    const before = this.nodes.get(name);
    if (!before) return null;
    this.count(before, -1);
    this.nodes.delete(name);
    this.layout++;
    return name;
  }

  count(node, by) {
    this.counts[node.state] += by;
    if (node.session) {
      const key = keyOf(node.session, node.tenant);
      if (!this.bySession.has(key)) this.bySession.set(key, {});
      const counts = this.bySession.get(key);
      counts[node.state] = (counts[node.state] ?? 0) + by;
    }
    if (node.error) this.list(node, by);
  }

  list(node, by) {
    const text = node.error;
    if (by > 0) {
      if (!this.troubles.has(text)) this.troubles.set(text, new Set());
      this.troubles.get(text).add(node.id);
      return;
    }
    const members = this.troubles.get(text);
    members?.delete(node.id);
    if (members?.size === 0) this.troubles.delete(text);
  }
}
