// The official TypeScript SDK walks through our tools: version 1 in sessions, version 2 in both eras. The walk and its
// report are those of walk.py.
//
//     node typescript_sdk.cjs GIVEN MAJOR PROJECT
//
// PROJECT is the folder whose node_modules has the packages.

"use strict";

const fs = require("node:fs");
const { createRequire } = require("node:module");
const path = require("node:path");

const ROUNDS = 20;
const SECONDS = 60;
const [, , given, major, project] = process.argv;
const { targets, calls } = JSON.parse(given);
const load = createRequire(path.join(project, "package.json"));
const answers = { sure: true, approve: true, guests: 4, where: "terrace" };
const completed = { role: "assistant", model: "scripted", content: { type: "text", text: "a greeting" } };
const info = { name: "walker", version: "1" };
const capabilities = { elicitation: { form: {} }, sampling: {} };

function filled(request) {
  const names = Object.keys(request.params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(names.map((name) => [name, answers[name]])) };
}

function installed(name) {
  const file = path.join(project, "node_modules", "@modelcontextprotocol", name, "package.json");
  return JSON.parse(fs.readFileSync(file, "utf8")).version;
}

/** Both versions behind the same few functions. */
const VERSIONS = {
  1: () => {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { CreateMessageRequestSchema, ElicitRequestSchema } = load("@modelcontextprotocol/sdk/types.js");
    return {
      number: installed("sdk"),
      StdioClientTransport,
      StreamableHTTPClientTransport,
      make: () => {
        const client = new Client(info, { capabilities });
        client.setRequestHandler(ElicitRequestSchema, async (request) => filled(request));
        client.setRequestHandler(CreateMessageRequestSchema, async () => completed);
        return client;
      },
      call: (client, params, options) => client.callTool(params, undefined, options),
    };
  },
  2: () => {
    const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
    const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
    const modes = { "2025-11-25": "legacy", "2026-07-28": { pin: "2026-07-28" }, auto: "auto" };
    return {
      number: installed("client"),
      StdioClientTransport,
      StreamableHTTPClientTransport,
      make: (target) => {
        const mode = modes[target.split(" ").at(-1)];
        const client = new Client(info, { capabilities, versionNegotiation: { mode } });
        client.setRequestHandler("elicitation/create", async (request) => filled(request));
        client.setRequestHandler("sampling/createMessage", async () => completed);
        return client;
      },
      call: (client, params, options) => client.callTool(params, options),
    };
  },
};

function called(result) {
  const blocks = result.content ?? [];
  return {
    text: blocks.filter((block) => block.type === "text").map((block) => block.text).join("\n"),
    data: result.structuredContent ?? null,
    is_error: result.isError ?? false,
    images: blocks.filter((block) => block.type === "image").map((block) => block.mimeType),
    blocks: blocks.map((block) => block.type),
  };
}

function nextCall(result) {
  const line = result.text.split("\n").find((text) => text.startsWith("Next: "));
  return line === undefined ? undefined : JSON.parse(line.slice("Next: ".length));
}

async function pages(call) {
  let page = await call("long_result", {});
  const texts = [page.text];
  for (let next = nextCall(page); next !== undefined; next = nextCall(page)) {
    page = await call(next.tool, next.arguments);
    texts.push(page.text);
  }
  return texts;
}

async function walk(version, client, target) {
  const call = async (name, args, options = {}) =>
    called(await version.call(client, { name, arguments: args }, { timeout: SECONDS * 1000, ...options }));
  const report = {
    version: version.number,
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    plain: await call("greet", { name: "Ada" }),
    structured: await call("total", { amounts: [1, 2.5] }),
    image: await call("picture", {}),
    failed: await call("fail", { reason: "rain" }),
  };
  report.kinds = {};
  for (const { tool, arguments: args } of calls) report.kinds[tool] = await call(tool, args);
  report.pages = await pages(call);
  const wrong = await call("total", { amounts: [1, 2.4], rounde: true });
  const next = nextCall(wrong);
  report.wrong = { ...wrong, next };
  report.corrected = await call(next.tool, next.arguments);
  report.progress = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const seen = [];
    await call("count", { upto: 3 }, { onprogress: ({ progress }) => seen.push(progress) });
    report.progress.push([...seen]);
  }
  report.elicitation = await call("confirm", { question: "Sure?" });
  report.abandoned = await abandoned(call, target);
  return report;
}

/** Cancel a call that has begun, then go on with the same connection. */
async function abandoned(call, target) {
  const controller = new AbortController();
  let begin;
  const began = new Promise((resolve) => (begin = resolve));
  const lingering = call("linger", { name: target }, { signal: controller.signal, onprogress: () => begin() });
  const ended = lingering.then(
    () => "result",
    () => "cancelled",
  );
  await began;
  controller.abort("no longer needed");
  await ended;
  return { next: await call("greet", { name: "Bob" }), cancelled: await call("await_cancelled", {}) };
}

async function reported(version, target, where) {
  const client = version.make(target);
  const { url, command, env, folder } = where;
  const transport = url
    ? new version.StreamableHTTPClientTransport(new URL(url))
    : new version.StdioClientTransport({ command: command[0], args: command.slice(1), env, cwd: folder, stderr: "ignore" });
  try {
    await client.connect(transport);
    return await walk(version, client, target);
  } catch (error) {
    return { crashed: String(error?.stack ?? error) };
  } finally {
    await client.close();
  }
}

async function main() {
  const version = VERSIONS[major]();
  const reports = {};
  for (const [target, where] of Object.entries(targets)) {
    reports[target] = await reported(version, target, where);
  }
  process.stdout.write(JSON.stringify(reports), () => process.exit(0));
}

main();
