"use strict";
// Runs inside the tests of a project: of each test it notes the lines that ran, by V8's own coverage, and the values
// of the project's frames wherever something was thrown, by V8's own debugger. One JSON object a line goes to the file
// that TRYSQUARE_SPECTRUM names. Loaded by node:test with --require, by jest and vitest as a setup file.

const fs = require("node:fs");
const inspector = require("node:inspector");

const file = process.env.TRYSQUARE_SPECTRUM;
const root = process.env.TRYSQUARE_ROOT;
const MOST_PAUSES = 200; // of one test; a program may throw without end
const MOST_FRAMES = 6;
const MOST_VALUES = 16;
const LONGEST = 120;

const scripts = new Map(); // by id: url, source map, and the source once it is needed
const written = new Set();
let thrown = [];
let pauses = 0;

const session = new inspector.Session();

function post(method, parameters) {
  let answer = {};
  session.post(method, parameters, (error, result) => {
    answer = error ? {} : result;
  });
  return answer;
}

function isOwn(url) {
  const path = url.startsWith("file://") ? decodeURIComponent(url.slice(7)) : url;
  return path.startsWith(root + "/") && !path.includes("/node_modules/") && path.split("?")[0] !== __filename;
}

function write(found) {
  fs.appendFileSync(file, JSON.stringify(found) + "\n");
}

function describe(script, id) {
  if (script.source === undefined) {
    script.source = post("Debugger.getScriptSource", { scriptId: id }).scriptSource || "";
    script.starts = [0];
    for (let at = script.source.indexOf("\n"); at >= 0; at = script.source.indexOf("\n", at + 1)) {
      script.starts.push(at + 1);
    }
  }
  if (!written.has(id)) {
    written.add(id);
    write({ kind: "script", process: process.pid, id, url: script.url, map: script.map });
  }
}

function text(value) {
  if (value === undefined) return "?";
  const preview = value.preview;
  let shown;
  if (value.type === "string") shown = JSON.stringify(value.value);
  else if (preview && preview.subtype === "array") {
    shown = "[" + preview.properties.map((each) => parts(each)).join(", ") + (preview.overflow ? ", …" : "") + "]";
  } else if (preview && preview.entries) {
    const entries = preview.entries.map((each) =>
      each.key ? `${each.key.description} => ${each.value.description}` : each.value.description,
    );
    shown = `${preview.description} {${entries.join(", ")}${preview.overflow ? ", …" : ""}}`;
  } else if (preview && !["error", "regexp", "date", "promise"].includes(preview.subtype)) {
    const name = preview.description === "Object" ? "" : preview.description + " ";
    const inner = preview.properties.map((each) => `${each.name}: ${parts(each)}`).join(", ");
    shown = `${name}{${inner}${preview.overflow ? ", …" : ""}}`;
  } else if (value.type === "function") return null;
  else shown = value.description || (value.type === "undefined" ? "undefined" : String(value.value));
  shown = shown.split("\n")[0];
  return shown.length > LONGEST ? shown.slice(0, LONGEST - 1) + "…" : shown;
}

function parts(property) {
  return property.type === "string" ? JSON.stringify(property.value) : String(property.value);
}

function valuesOf(frame) {
  const values = {};
  for (const scope of frame.scopeChain) {
    if (!["local", "block", "catch"].includes(scope.type)) continue;
    const found = post("Runtime.getProperties", {
      objectId: scope.object.objectId, ownProperties: true, generatePreview: true,
    });
    for (const each of found.result || []) {
      if (each.name in values || Object.keys(values).length >= MOST_VALUES) continue;
      const shown = text(each.value);
      if (shown !== null) values[each.name] = shown;
    }
    if (scope.type === "local") break; // what follows belongs to the functions around it
  }
  return values;
}

// The parts of an object that was thrown and is no error.
function objectText(value) {
  if (value.objectId === undefined) return value.type === "string" ? value.value : "";
  const found = post("Runtime.getProperties", { objectId: value.objectId, ownProperties: true, generatePreview: true });
  const parts = (found.result || []).filter((each) => each.enumerable && each.value).slice(0, 6);
  return `{${parts.map((each) => `${each.name}: ${text(each.value)}`).join(", ")}}`;
}

// What an assertion compared, as its error has it.
function comparedBy(error) {
  const found = {};
  if (error.className === undefined || error.objectId === undefined) return found;
  for (const each of post("Runtime.getProperties", { objectId: error.objectId, ownProperties: true }).result || []) {
    if (each.name !== "expected" && each.name !== "actual") continue;
    const value = each.value && each.value.type === "string" ? each.value.value : text(each.value);
    if (value) found[each.name] = value.length > LONGEST * 3 ? value.slice(0, LONGEST * 3 - 1) + "…" : value;
  }
  return found;
}

function onPaused({ params }) {
  pauses += 1;
  if (pauses > MOST_PAUSES) post("Debugger.setPauseOnExceptions", { state: "none" });
  const data = params.data || {};
  const frames = [];
  for (const frame of params.callFrames) {
    const id = frame.location.scriptId;
    const script = scripts.get(id);
    if (script === undefined || frames.length >= MOST_FRAMES) continue;
    describe(script, id);
    frames.push({
      script: id, function: frame.functionName, line: frame.location.lineNumber, column: frame.location.columnNumber || 0,
      values: valuesOf(frame),
    });
  }
  if (frames.length > 0) {
    const isOwnRaise = frames[0].script === params.callFrames[0].location.scriptId;
    const shown = data.subtype === "error" ? data.description : objectText(data) || data.description || text(data) || "";
    thrown.push({ kind: data.className || "", text: shown, own: isOwnRaise, frames, compared: comparedBy(data) });
    if (thrown.length > 20) thrown.shift();
  }
  post("Debugger.resume");
}

// V8 names only functions that ran since the last time; the others are known by their extent.
function covered(id, script, functions, extents) {
  const size = script.source.length;
  const paint = new Uint8Array(size + 1);
  const ran = new Map(functions.map((each) => [`${each.ranges[0].startOffset}-${each.ranges[0].endOffset}`, each]));
  const layers = [...extents, ...functions].map((each) => each.ranges[0]);
  layers.sort((one, other) => one.startOffset - other.startOffset || other.endOffset - one.endOffset);
  for (const { startOffset, endOffset } of layers) {
    const found = ran.get(`${startOffset}-${endOffset}`);
    if (found === undefined) paint.fill(0, startOffset, endOffset);
    else for (const range of found.ranges) paint.fill(range.count > 0 ? 1 : 0, range.startOffset, range.endOffset);
  }
  const ranges = [];
  let line = 0;
  const position = (offset) => {
    while (line + 1 < script.starts.length && script.starts[line + 1] <= offset) line += 1;
    return [line, offset - script.starts[line]];
  };
  for (let at = paint.indexOf(1); at >= 0; ) {
    let end = paint.indexOf(0, at);
    if (end < 0) end = size;
    ranges.push([...position(at), ...position(end)]);
    at = paint.indexOf(1, end);
  }
  const named = [];
  line = 0;
  for (const { startOffset, endOffset } of layers) {
    const found = ran.get(`${startOffset}-${endOffset}`);
    if (found === undefined || (startOffset === 0 && endOffset === size)) continue;
    const begin = position(startOffset);
    const back = line;
    named.push([found.functionName, ...begin, ...position(endOffset)]);
    line = back;
  }
  return { script: id, ranges, functions: named };
}

function begin() {
  post("Profiler.takePreciseCoverage");
  thrown = [];
  pauses = 0;
  post("Debugger.setPauseOnExceptions", { state: "all" });
}

function end(name, path) {
  post("Debugger.setPauseOnExceptions", { state: "none" });
  const found = post("Profiler.takePreciseCoverage").result || [];
  const known = new Map((post("Profiler.getBestEffortCoverage").result || []).map((each) => [each.scriptId, each]));
  const lines = [];
  for (const { scriptId, functions } of found) {
    const script = scripts.get(scriptId);
    if (script === undefined) continue;
    describe(script, scriptId);
    const extents = (known.get(scriptId) || { functions: [] }).functions;
    lines.push(covered(scriptId, script, functions, extents));
  }
  write({ kind: "test", process: process.pid, name, file: path, lines, thrown });
  thrown = [];
}

function start() {
  session.connect();
  session.on("Debugger.scriptParsed", ({ params }) => {
    if (isOwn(params.url)) scripts.set(params.scriptId, { url: params.url, map: params.sourceMapURL || "" });
  });
  session.on("Debugger.paused", onPaused);
  post("Debugger.enable");
  post("Profiler.enable");
  post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
}

function fullName(task) {
  const names = [];
  for (let each = task; each && each.name; each = each.suite) names.unshift(each.name);
  return names.join(" ");
}

if (file !== undefined && root !== undefined) {
  if (typeof globalThis.beforeEach === "function") {
    start();
    globalThis.beforeEach(() => begin());
    // Without a named parameter: jest takes a function that has one to call back.
    globalThis.afterEach(function () {
      const task = arguments[0] && arguments[0].task;
      const state = globalThis.expect.getState();
      end(task ? fullName(task) : state.currentTestName, task ? task.file.filepath : state.testPath);
    });
  } else if (!process.execArgv.includes("--test") && !process.argv.includes("--test")) {
    start();
    const runner = require("node:test");
    runner.beforeEach(() => begin());
    runner.afterEach((context) => end(context.fullName || context.name, context.filePath || process.argv[1]));
  }
}
