// Drives one Chromium. Each line on stdin is a chain of calls on something known by a name; each answer is a line.
import { chromium } from "playwright-core";
import { createInterface } from "node:readline";

const known = new Map();
const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.argv[2], headless: true, args: quiet });
known.set("browser", browser);

// What a page may not do: fail, be refused by its policy, or ask another host for something.
function observe(page, problems) {
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => {
    const host = new URL(request.url()).hostname;
    if (!["localhost", "127.0.0.1", ""].includes(host)) problems.push(`asked ${host}`);
  });
}

async function run({ on, calls, keep }) {
  let value = known.get(on);
  for (const [name, ...given] of calls) {
    const values = given.map((each) => (each && each.known ? known.get(each.known) : each));
    value = await (typeof value[name] === "function" ? value[name](...values) : value[name]);
  }
  if (!keep) return value ?? null;
  known.set(keep, value);
  if (typeof value.mainFrame === "function") {
    known.set(`${keep}.problems`, { found: [] });
    observe(value, known.get(`${keep}.problems`).found);
  }
  return null;
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, ...wanted } = JSON.parse(line);
  const answer = await run(wanted).then((value) => ({ id, value }), (error) => ({ id, error: String(error) }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}).on("close", async () => { await browser.close(); });
process.stdout.write("ready\n");
