// Drives one headless Chromium as the tests say: a command in JSON a line on stdin, its answer in JSON a line
// on stdout. `tests/e2e/teams/browser.py` speaks to it. Everything outside this machine is refused to pages.
"use strict";

const readline = require("node:readline");
const { chromium } = require("playwright-core");

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];
const pages = new Map();
let context;

async function start(executable) {
  const browser = await chromium.launch({ executablePath: executable, args: ["--no-sandbox"] });
  context = await browser.newContext({ viewport: { width: 1500, height: 1400 }, locale: "en-GB" });
  await context.route("**/*", (route) => {
    const url = new URL(route.request().url());
    const isHere = !url.protocol.startsWith("http") || LOOPBACK.includes(url.hostname);
    return isHere ? route.continue() : route.abort();
  });
}

const commands = {
  async open({ page, url, ready, timeout }) {
    const made = pages.get(page) ?? (await context.newPage());
    pages.set(page, made);
    await made.goto(url, { timeout });
    await made.locator(ready).first().waitFor({ timeout });
  },
  async click({ page, selector, timeout }) {
    await pages.get(page).locator(selector).last().click({ timeout });
  },
  async hover({ page, selector, timeout }) {
    await pages.get(page).locator(selector).last().hover({ timeout });
    await pages.get(page).waitForTimeout(600); // what it shows fades in
  },
  async type({ page, selector, text, timeout }) {
    await pages.get(page).locator(selector).first().click({ timeout });
    await pages.get(page).keyboard.insertText(text);
  },
  async wait({ page, selector, timeout }) {
    await pages.get(page).locator(selector).first().waitFor({ timeout });
  },
  async gone({ page, selector, timeout }) {
    await pages.get(page).locator(selector).first().waitFor({ state: "hidden", timeout });
  },
  async texts({ page, selector }) {
    return pages.get(page).locator(selector).allInnerTexts();
  },
  async widths({ page, selector }) {
    // Of pictures in their own pixels: 0 = it could not be loaded.
    return pages.get(page).locator(selector).evaluateAll((found) => found.map((one) => one.naturalWidth));
  },
  async screenshot({ page, path }) {
    await pages.get(page).screenshot({ path });
  },
};

async function main() {
  await start(process.argv[2]);
  process.stdout.write('{"value":"ready"}\n');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { command, ...given } = JSON.parse(line);
    let answer;
    try {
      // Pages behind another one are drawn once a second, and whatever waits for them takes as long.
      await pages.get(given.page)?.bringToFront();
      answer = { value: (await commands[command](given)) ?? null };
    } catch (failed) {
      answer = { error: String(failed.message ?? failed) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  process.exit(0);
}

main();
