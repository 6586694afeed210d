// Uses the page in a real browser, as a person would.
//
//     REVEILLE_PAGE_TOOLS=FOLDER node check.mjs [--update] http://127.0.0.1:7700
//
// FOLDER has `node_modules` with playwright-core, axe-core, pixelmatch and pngjs. The gateway should have a small simulated
// fleet that takes some seconds to boot, and no sessions. Each step counts for itself; a later one runs although
// an earlier one has failed. `--update` stores new pictures to compare with.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";

const load = createRequire(path.join(process.env.REVEILLE_PAGE_TOOLS, "node_modules", "entry.js"));
const { chromium } = load("playwright-core");
const { PNG } = load("pngjs");

const isUpdate = process.argv[2] === "--update";
const base = process.argv.at(-1);
const pictures = path.join(path.dirname(fileURLToPath(import.meta.url)), "expected");

/** Bound of every wait, far above what the page takes on a busy machine. */
const PATIENCE = 60_000;

/** Share of a picture that may differ: edges are not smoothed the same everywhere. */
const TOLERATED = 0.01;

/** Size of the map in pictures, because what stands above it is as high as the fonts of the machine. */
const PICTURED = "#map { flex: none !important; height: 480px !important; width: 800px !important; }";

/** Milliseconds between two pictures that are equal when the page is at rest. */
const BETWEEN_PICTURES = 300;

/** Time in which a button is held down: the list that it stands in is renewed meanwhile. */
const SLOW_PRESS = 1500;

/** Width of a narrow phone. */
const PHONE = { width: 390, height: 844 };

const DESK = { width: 1280, height: 800 };

const ROOT_MAY_NOT_SANDBOX = process.getuid() === 0 ? ["--no-sandbox"] : [];

const FLAGS = [
  ...ROOT_MAY_NOT_SANDBOX, "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

const NODE = "x1000c0s0b0n0";
const NEXT_NODE = "x1000c0s0b0n1";

/** Seconds between two batches: longer than the page rests between two readings of a standing. */
const SOAK = 6;

const troubles = [];

/** Line to the gateway that can be cut. */
class Line {
  static async to(gateway) {
    const line = new Line();
    line.sockets = new Set();
    line.isCut = false;
    line.server = net.createServer(near => line.connect(near, gateway));
    await new Promise(resolve => line.server.listen(0, "127.0.0.1", resolve));
    line.url = `http://127.0.0.1:${line.server.address().port}`;
    return line;
  }

  connect(near, gateway) {
    if (this.isCut) return near.destroy();
    const far = net.connect(gateway.port, gateway.hostname);
    for (const [one, other] of [[near, far], [far, near]]) {
      this.sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }

  cut() {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend() {
    this.isCut = false;
  }

  end() {
    this.cut();
    this.server.close();
  }
}

async function gateway(method, address, body) {
  const answer = await fetch(base + address, {
    method,
    headers: { "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${address}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

/** Opens the page. What a `tolerant` one prints to its console is expected. */
async function open(browser, { tolerant, ...options } = {}, from = base) {
  const page = await browser.newPage({ viewport: DESK, ...options });
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", error => troubles.push(String(error)));
  page.on("console", message => {
    if (message.type() === "error" && !tolerant) troubles.push(message.text());
  });
  await page.goto(from + "/");
  await page.waitForFunction(() => document.body.dataset.synced === "true");
  return page;
}

/** Waits until a count of the legend is as expected. */
async function count(page, state, expected) {
  await page.waitForFunction(
    ([state, expected]) => document.querySelector(`[data-count="${state}"] b`).textContent === String(expected),
    [state, expected],
  );
}

/** Middle of a node's square in the window. */
async function squareOf(page, id) {
  return page.evaluate(async id => {
    const { layOut } = await import(new URL("layout.js", location.href));
    const nodes = await (await fetch(new URL("../v2/components", location.href))).json();
    const plan = layOut(nodes.map(node => node.id), document.getElementById("map").clientWidth);
    const cell = plan.index.get(id);
    const box = document.getElementById("map").getBoundingClientRect();
    return { x: Math.round(box.left + 1 + cell.x + 4), y: Math.round(box.top + 1 + cell.y + 4) };
  }, id);
}

/** Red, green and blue of a state, as the style of the page names them. */
async function colourOf(page, state) {
  return page.evaluate(state => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${state})`;
    document.body.append(probe);
    const colour = getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).map(Number);
    probe.remove();
    return colour;
  }, state);
}

/**
 * Waits until the browser has drawn a node's square in the colour of a state. Looks again and again, because the map is drawn
 * some frames after its records arrive, and moves down when a session appears above it.
 */
async function drawn(page, id, state) {
  const expected = String(await colourOf(page, state));
  let seen;
  await eventually(`${id} is drawn in the colour of ${state}, ${expected}`, () => `its colour is ${seen}`, async () => {
    const { x, y } = await squareOf(page, id);
    const picture = PNG.sync.read(await page.screenshot());
    const offset = (y * picture.width + x) * 4;
    seen = String([...picture.data.subarray(offset, offset + 3)]);
    return seen === expected;
  });
}

/** Tries again until `holds` returns true. */
async function eventually(expectation, seen, holds) {
  for (const until = Date.now() + PATIENCE; Date.now() < until;) {
    if (await holds()) return;
    await new Promise(resolve => setTimeout(resolve, BETWEEN_PICTURES));
  }
  assert.fail(`${expectation}: ${seen()}`);
}

/** Picture of the map without what depends on the fonts of the machine, once the map is at rest. */
async function pictureOfMap(page) {
  await page.evaluate(() => { CanvasRenderingContext2D.prototype.fillText = () => {}; });
  await page.addStyleTag({ content: PICTURED });
  const until = Date.now() + PATIENCE;
  let before = await page.locator("#map").screenshot();
  while (Date.now() < until) {
    await page.waitForTimeout(BETWEEN_PICTURES);
    const shot = await page.locator("#map").screenshot();
    if (shot.equals(before)) return shot;
    before = shot;
  }
  throw new Error("the map does not come to rest");
}

/** Reboots two nodes, of which each is a batch. Returns the card of the session. */
async function rollOut(page, name, policy = {}) {
  const rollout = { batch_count: 1, ...policy };
  await gateway("POST", "/reveille/v1/sessions", { name, operation: "reboot", template_name: "page", limit: `${NODE},${NEXT_NODE}`, rollout });
  return page.locator(`[data-session="${name}"]`);
}

/** Waits until the cells of the batches are as expected, in their order. */
async function batches(card, expected) {
  let seen;
  await eventually(`batches are ${expected}`, () => `they are ${seen}`, async () => {
    seen = await card.locator(".batches i").evaluateAll(cells => cells.map(cell => cell.dataset.progress).join(" "));
    return seen === expected;
  });
}

async function confirm(page, reason, text = "") {
  const dialog = page.locator("#confirm");
  await dialog.waitFor();
  await dialog.locator("p", { hasText: text }).waitFor();
  if (reason) await dialog.locator("input").fill(reason);
  await dialog.locator("button.strong").click();
}

const STEPS = {
  async "root leads browsers to the page and programs to the versions"(browser) {
    const page = await open(browser);
    assert.equal(new URL(page.url()).pathname, "/dashboard/");
    const versions = await gateway("GET", "/");
    assert.equal(versions[0].major, "2");
    await page.close();
  },

  async "page loads nothing from elsewhere"(browser) {
    const asked = [];
    const page = await browser.newPage();
    page.on("request", request => asked.push(request.url()));
    await page.goto(base + "/");
    await page.waitForFunction(() => document.body.dataset.synced === "true");
    assert.deepEqual(asked.filter(url => !url.startsWith(base)), []);
    await page.close();
  },

  async "nodes are counted and change as they boot"(browser) {
    const page = await open(browser);
    const nodes = (await gateway("GET", "/v2/components")).length;
    assert.ok(nodes > 0);
    await gateway("POST", "/v2/sessions", { operation: "boot", template_name: "page", name: "page-boot" });
    await page.locator('[data-session="page-boot"]').waitFor();
    await count(page, "stable", nodes);
    await page.locator('[data-session="page-boot"]', { hasText: "succeeded" }).waitFor();
    await page.close();
  },

  async "trouble of a node is shown where it is and goes with it"(browser) {
    const page = await open(browser);
    await drawn(page, NODE, "stable");
    await gateway("PATCH", `/v2/components/${NODE}`, { error: "fan 3 is broken" });
    await page.locator("#troubles li", { hasText: "fan 3 is broken" }).waitFor();
    await page.locator("#troubles button", { hasText: NODE }).click();
    await page.locator("#node .sentence").waitFor();
    assert.ok(page.url().endsWith(`#nodes/${NODE}`));
    await gateway("PATCH", `/v2/components/${NODE}`, { error: "" });
    await page.locator("#troubles", { hasText: "No node reports an error." }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#node").waitFor({ state: "hidden" });
    await drawn(page, NODE, "stable");
    await page.close();
  },

  async "panel explains a node and tells its history"(browser) {
    const page = await open(browser);
    await page.goto(`${base}/dashboard/#nodes/${NODE}`);
    const panel = page.locator("#node");
    await panel.locator("h2", { hasText: NODE }).waitFor();
    await panel.locator("li", { hasText: "boot reported" }).first().waitFor();
    await panel.locator("summary").click();
    await panel.locator("details dt").first().waitFor();
    await page.goBack();
    await panel.waitFor({ state: "hidden" });
    await page.close();
  },

  async "node is found by its name and chosen by a click"(browser) {
    const page = await open(browser);
    await page.getByLabel("Find a node").fill(NODE);
    await page.keyboard.press("Enter");
    await page.locator("#node h2", { hasText: NODE }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#node").waitFor({ state: "hidden" });
    const heading = page.locator("#node h2", { hasText: NODE });
    await eventually(`a click on ${NODE} opens it`, () => "it stays closed", async () => {
      const { x, y } = await squareOf(page, NODE);
      await page.mouse.click(x, y);
      return heading.isVisible();
    });
    await page.close();
  },

  async "keyboard moves on the map and opens a node"(browser) {
    const page = await open(browser);
    await page.locator("#map").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowLeft");
    assert.match(await page.locator("#pointed").textContent(), new RegExp(`^${NODE}: `));
    await page.keyboard.press("Enter");
    await page.locator("#node h2", { hasText: NODE }).waitFor();
    await page.close();
  },

  async "session is cancelled after a confirmation and retried"(browser) {
    const page = await open(browser);
    await gateway("POST", "/v2/sessions", { operation: "reboot", template_name: "page", name: "page-stop" });
    const card = page.locator('[data-session="page-stop"]');
    await card.locator(".bar").waitFor();
    // What is pressed stays in its place while something else about the session changes.
    await card.getByRole("button", { name: "Cancel" }).hover();
    await page.mouse.down();
    await gateway("POST", "/reveille/v1/sessions/page-stop/pause");
    await page.waitForTimeout(SLOW_PRESS);
    await page.mouse.up();
    await page.locator("#confirm").getByRole("button", { name: "Leave it" }).click();
    await page.locator("#confirm").waitFor({ state: "hidden" });
    await card.getByText("paused by client").waitFor();
    assert.equal((await gateway("GET", "/reveille/v1/sessions/page-stop")).cancellation, undefined);
    await card.getByRole("button", { name: "Cancel" }).click();
    await confirm(page, "wrong image");
    await card.locator(".row", { hasText: "cancelled" }).waitFor();
    assert.equal((await gateway("GET", "/reveille/v1/sessions/page-stop")).cancellation.reason, "wrong image");
    await card.getByRole("button", { name: "Retry" }).click();
    await confirm(page);
    await page.locator("#sessions li", { hasText: "retry of page-stop" }).locator(".row", { hasText: "succeeded" }).waitFor();
    await page.close();
  },

  async "session is paused after a confirmation and resumed"(browser) {
    const page = await open(browser);
    await gateway("POST", "/v2/sessions", { operation: "reboot", template_name: "page", name: "page-pause" });
    const card = page.locator('[data-session="page-pause"]');
    await card.getByRole("button", { name: "Pause" }).click();
    await confirm(page, "power cap");
    await card.getByText("paused by client").waitFor();
    const { pause } = await gateway("GET", "/reveille/v1/sessions/page-pause");
    assert.deepEqual([pause.by, pause.reason], ["client", "power cap"]);
    await card.getByRole("button", { name: "Resume" }).click();
    await confirm(page);
    await card.locator(".row", { hasText: "succeeded" }).waitFor();
    await page.close();
  },

  async "rollout shows its batches as they open and are met"(browser) {
    const page = await open(browser);
    let readings = 0;
    page.on("request", request => { readings += Number(request.url().endsWith("/sessions/page-roll")); });
    const card = await rollOut(page, "page-roll", { soak: SOAK });
    await batches(card, "open closed");
    await card.getByText("batch 1 of 2 is open, 0 of 1 nodes as wanted, 1 under way").waitFor();
    await batches(card, "met closed");
    await card.getByText(/^batch 1 of 2 is met, 1 as wanted; the next one follows at .+ after the soak$/).waitFor();
    await batches(card, "met open");
    await card.locator(".row", { hasText: "succeeded" }).waitFor();
    await batches(card, "met met");
    assert.equal(await card.getByRole("img", { name: "2 batches: 2 met" }).count(), 1);
    const before = readings;
    await page.waitForTimeout(1000 * SOAK);
    assert.deepEqual([before > 0, readings], [true, before], "a complete session is not read");
    await page.close();
  },

  async "missed batch asks for a decision and the next one follows"(browser) {
    const page = await open(browser);
    const card = await rollOut(page, "page-miss");
    await batches(card, "open closed");
    await gateway("PATCH", `/v2/components/${NODE}`, { status: { status_override: "failed" } });
    await card.getByRole("alert").filter({ hasText: "Resume lets the next batch follow" }).waitFor();
    await card.locator(".row", { hasText: "waits for a decision" }).waitFor();
    await batches(card, "missed closed");
    await card.getByText("1 failed; missed its threshold, and a person decides").waitFor();
    await card.getByRole("button", { name: "Resume" }).click();
    await confirm(page, "", "The next batch follows, although nodes of batch 1 failed.");
    await batches(card, "waived open");
    assert.equal(await card.getByRole("alert").count(), 0);
    await card.locator(".row", { hasText: "succeeded for some nodes" }).waitFor();
    await gateway("PATCH", `/v2/components/${NODE}`, { enabled: true, status: { status_override: "" } });
    await count(page, "stable", (await gateway("GET", "/v2/components")).length);
    await page.close();
  },

  async "page says when it is not live and resumes"(browser) {
    const line = await Line.to(new URL(base));
    const page = await open(browser, { tolerant: true }, line.url);
    await page.locator('#connection[data-state="live"]').waitFor();
    line.cut();
    await page.locator('#connection[data-state="broken"]', { hasText: "not live since" }).waitFor();
    await gateway("PATCH", `/v2/components/${NODE}`, { error: "changed meanwhile" });
    line.mend();
    await page.locator('#connection[data-state="live"]').waitFor();
    await page.locator("#troubles li", { hasText: "changed meanwhile" }).waitFor();
    await gateway("PATCH", `/v2/components/${NODE}`, { error: "" });
    await page.close();
    line.end();
  },

  async "hosts and devices have their views"(browser) {
    const page = await open(browser);
    await page.getByRole("link", { name: "Hosts" }).click();
    await page.locator("#hosts", { hasText: "No bare-metal hosts." }).waitFor();
    await page.getByRole("link", { name: "Devices" }).click();
    await page.locator("#devices", { hasText: "No edge devices." }).waitFor();
    await page.close();
  },

  async "page fits a phone"(browser) {
    const page = await open(browser, { viewport: PHONE });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
    await page.close();
  },

  async "page is accessible in both colour schemes"(browser) {
    const axe = fs.readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(browser, { colorScheme, bypassCSP: true });
      await page.goto(`${base}/dashboard/#nodes/${NODE}`);
      await page.locator("#node .sentence").waitFor();
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations.map(one => `${colorScheme}: ${one.id}: ${one.nodes.map(node => node.html).join(" ")}`), []);
      await page.close();
    }
  },

  async "map looks as it did"(browser) {
    const { default: compare } = await import(load.resolve("pixelmatch"));
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(browser, { colorScheme, bypassCSP: true });
      const shot = await pictureOfMap(page);
      const file = path.join(pictures, `map-${colorScheme}.png`);
      if (isUpdate) fs.writeFileSync(file, shot);
      const [seen, expected] = [PNG.sync.read(shot), PNG.sync.read(fs.readFileSync(file))];
      assert.deepEqual([seen.width, seen.height], [expected.width, expected.height]);
      const differ = compare(seen.data, expected.data, null, seen.width, seen.height, { threshold: 0.2 });
      assert.ok(differ <= TOLERATED * seen.width * seen.height, `${differ} pixels differ in ${colorScheme}`);
      await page.close();
    }
  },

  async "nothing went wrong unseen"() {
    assert.deepEqual(troubles, []);
  },
};

async function prepare() {
  const template = { boot_sets: { all: { type: "s3", path: "s3://boot-images/compute-2025.11/manifest.json", node_roles_groups: ["Compute", "Application"] } } };
  await gateway("PUT", "/v2/sessiontemplates/page", template);
}

let [passed, failed] = [0, 0];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
try {
  await prepare();
  for (const [name, step] of Object.entries(STEPS)) {
    const began = Date.now();
    try {
      await step(browser);
      passed++;
      console.log(`ok ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed++;
      console.log(`FAILED ${name}\n${error.stack}`);
    }
  }
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
