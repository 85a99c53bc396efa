// The TypeScript SDK: `node typescript_peer.mjs stdio TOOLS`, `… http TOOLS PORT` or `… memory TOOLS CALLERS SECONDS`.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import path from "node:path";

const project = createRequire(path.join(process.env.BENCH_NODE_PROJECT, "package.json"));
const load = (name) => import(pathToFileURL(project.resolve(name)).href);
const { McpServer, InMemoryTransport, createMcpHandler } = await load("@modelcontextprotocol/server");
const { z } = await load("zod");

const [transport, tools, ...rest] = process.argv.slice(2);
const description = "Repeat a text a number of times, loudly if asked to.";
const name = (number) => `tool_${String(number).padStart(4, "0")}`;

function built() {
  const server = new McpServer({ name: "typescript", version: "1" });
  for (let number = 0; number < Number(tools); number += 1) {
    const inputSchema = z.strictObject({
      text: z.string().describe("What to repeat"),
      times: z.number().int().min(1).max(100).default(1).describe("How often"),
      loud: z.boolean().default(false).describe("Whether in capital letters"),
    });
    server.registerTool(name(number), { description, inputSchema }, async ({ text, times, loud }) => {
      const whole = Array(times).fill(text).join(" ");
      const result = loud ? whole.toUpperCase() : whole;
      return { content: [{ type: "text", text: result }], structuredContent: { result } };
    });
  }
  return server;
}

async function serveHttp(port) {
  const handler = createMcpHandler(built);
  createServer(async (incoming, outgoing) => {
    const parts = [];
    for await (const part of incoming) parts.push(part);
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1:${port}${incoming.url}`, {
        method: incoming.method,
        headers: incoming.headers,
        body: parts.length ? Buffer.concat(parts) : undefined,
      }),
    );
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
    outgoing.end(Buffer.from(await answer.arrayBuffer()));
  }).listen(port, "127.0.0.1");
}

async function measureMemory(callers, seconds) {
  const [client, own] = InMemoryTransport.createLinkedPair();
  await built().connect(own);
  const waiting = new Map();
  client.onmessage = (message) => waiting.get(message.id)?.(message);
  await client.start();
  const ask = (id, method, params) =>
    new Promise((resolve) => {
      waiting.set(id, resolve);
      client.send({ jsonrpc: "2.0", id, method, params });
    });
  await ask(0, "initialize", {
    protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "benchmark", version: "1" },
  });
  await client.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  let number = 0;
  const one = async () => {
    number += 1;
    const own = number;
    const params = { name: name(own % Math.min(Number(tools), 8)), arguments: { text: `hello ${own}`, times: 2 } };
    const answer = await ask(own, "tools/call", params);
    waiting.delete(own);
    if (answer.result.content[0].text !== `hello ${own} hello ${own}`) throw new Error(JSON.stringify(answer));
  };
  for (let warm = 0; warm < 50; warm += 1) await one();
  const before = process.cpuUsage();
  const started = performance.now();
  const first = number;
  const until = started + seconds * 1000;
  await Promise.all(Array.from({ length: callers }, async () => {
    do await one(); while (performance.now() < until);
  }));
  const cpu = process.cpuUsage(before);
  console.log(JSON.stringify({
    calls: number - first,
    seconds: (performance.now() - started) / 1000,
    cpu: (cpu.user + cpu.system) / 1e6,
  }));
}

if (transport === "stdio") {
  const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
  serveStdio(built);
} else if (transport === "http") {
  await serveHttp(Number(rest[0]));
} else {
  await measureMemory(Number(rest[0]), Number(rest[1]));
}
