// Hosts and devices as tables, read while they are in sight.

import { call } from "./gateway.js";
import { element, instant, renew } from "./elements.js";

/** Time between two readings of a table in sight. */
const PERIOD = 10_000;

const MOST = 500;

const VIEWS = {
  hosts: {
    path: `/kubernetes/apis/metal3.io/v1alpha1/baremetalhosts?limit=${MOST}`,
    columns: ["Namespace", "Host", "State", "Power", "Operational", "Error", "Consumer"],
    row: host => [
      host.metadata.namespace,
      host.metadata.name,
      host.status?.provisioning?.state,
      host.status?.poweredOn === undefined ? "" : host.status.poweredOn ? "on" : "off",
      host.status?.operationalStatus,
      host.status?.errorMessage,
      host.spec?.consumerRef?.name,
    ],
    none: ["No bare-metal hosts. ", element("code", {}, "reveille demo hosts"), " shows some."],
  },
  devices: {
    path: `/flightctl/api/v1/devices?limit=${MOST}`,
    columns: ["Device", "Fleet", "Summary", "Updated", "Applications", "Last seen"],
    row: device => [
      device.metadata.labels?.alias ?? device.metadata.name,
      device.metadata.owner?.replace(/^Fleet\//, ""),
      device.status?.summary?.status,
      device.status?.updated?.status,
      device.status?.applicationsSummary?.status,
      instant(device.status?.lastSeen),
    ],
    none: ["No edge devices. ", element("code", {}, "reveille demo devices"), " shows some."],
  },
};

export class TableView {
  constructor(name) {
    this.name = name;
    this.view = VIEWS[name];
    this.place = document.querySelector(`#${name} .scroll`);
    this.timer = null;
  }

  async show() {
    this.hide();
    this.timer = setInterval(() => this.read(), PERIOD);
    await this.read();
  }

  hide() {
    clearInterval(this.timer);
  }

  async read() {
    try {
      this.fill(await call(this.view.path));
    } catch (error) {
      renew(this.place, [element("p", { role: "alert" }, `The ${this.name} cannot be read: ${error.message}`)]);
    }
  }

  fill({ items, metadata }) {
    if (!items.length) return renew(this.place, [element("p", { className: "quiet" }, ...this.view.none)]);
    const head = element("tr", {}, ...this.view.columns.map(text => element("th", { scope: "col", textContent: text })));
    const rows = items.map(item => element("tr", {}, ...this.view.row(item).map(value => element("td", {}, value ?? ""))));
    const parts = [element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))];
    const more = metadata?.remainingItemCount;
    if (more) parts.push(element("p", { className: "quiet" }, `${more} more are not shown.`));
    renew(this.place, parts);
  }
}
