// The official TypeScript SDK walks through our tools: version 1 in sessions, version 2 in both eras. The walk and its
// report are those of walk.py.
//
//     node typescript_sdk.cjs TARGETS MAJOR PROJECT
//
// PROJECT is the folder whose node_modules has the packages.

"use strict";

const fs = require("node:fs");
const { createRequire } = require("node:module");
const path = require("node:path");

const ROUNDS = 20;
const SECONDS = 60;
const [, , targets, major, project] = process.argv;
const load = createRequire(path.join(project, "package.json"));
const accepted = { action: "accept", content: { sure: true } };
const info = { name: "walker", version: "1" };
const capabilities = { elicitation: { form: {} } };

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
    const { ElicitRequestSchema } = load("@modelcontextprotocol/sdk/types.js");
    return {
      number: installed("sdk"),
      StdioClientTransport,
      StreamableHTTPClientTransport,
      make: () => {
        const client = new Client(info, { capabilities });
        client.setRequestHandler(ElicitRequestSchema, async () => accepted);
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
        client.setRequestHandler("elicitation/create", async () => accepted);
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
  };
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
  const wrong = await call("total", { amounts: [1, 2.4], rounde: true });
  report.wrong = { ...wrong, next: wrong.data.next };
  report.corrected = await call(wrong.data.next.tool, wrong.data.next.arguments);
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
  for (const [target, where] of Object.entries(JSON.parse(targets))) {
    reports[target] = await reported(version, target, where);
  }
  process.stdout.write(JSON.stringify(reports), () => process.exit(0));
}

main();
