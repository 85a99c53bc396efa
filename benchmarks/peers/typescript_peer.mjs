// The TypeScript SDK: `node typescript_peer.mjs stdio TOOLS`, `… http TOOLS PORT` or `… http-sessions TOOLS PORT`.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import path from "node:path";

const project = createRequire(path.join(process.env.BENCH_NODE_PROJECT, "package.json"));
const load = (name) => import(pathToFileURL(project.resolve(name)).href);
const { McpServer, WebStandardStreamableHTTPServerTransport, createMcpHandler } = await load("@modelcontextprotocol/server");
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

async function serveHttp(port, handle) {
  // Longer than Node's 5 s: opening 64 sessions of a server with 1,000 tools takes longer.
  createServer({ keepAliveTimeout: 120_000 }, async (incoming, outgoing) => {
    const parts = [];
    for await (const part of incoming) parts.push(part);
    const answer = await handle(
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

function sessions() {
  const open = new Map();
  return async (request) => {
    const known = open.get(request.headers.get("mcp-session-id"));
    if (known) return known.handleRequest(request);
    const opened = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void open.set(id, opened),
      enableJsonResponse: true,
    });
    await built().connect(opened);
    return opened.handleRequest(request);
  };
}

if (transport === "stdio") {
  const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
  serveStdio(built);
} else if (transport === "http") {
  const handler = createMcpHandler(built);
  await serveHttp(Number(rest[0]), (request) => handler.fetch(request));
} else {
  await serveHttp(Number(rest[0]), sessions());
}
