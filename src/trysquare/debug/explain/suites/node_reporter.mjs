// Reporter of node:test: one JSON object a line for each test that ended, with its error as it was thrown.

function plain(value) {
  if (value === undefined) return undefined;
  try {
    return typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

function errorOf(details) {
  const outer = details?.error;
  if (outer === undefined) return undefined;
  const error = outer.cause instanceof Error || typeof outer.cause === "object" ? (outer.cause ?? outer) : outer;
  const message = typeof outer.cause === "string" ? outer.cause : error.message;
  return {
    type: error.name ?? "Error", message: message ?? String(error), stack: error.stack ?? "",
    expected: plain(error.expected), actual: plain(error.actual), reason: outer.failureType,
  };
}

export default async function* report(source) {
  const names = [];
  const written = {};
  for await (const { type, data } of source) {
    if (type === "test:start") {
      names[data.nesting] = data.name;
      names.length = data.nesting + 1;
    }
    if (type === "test:stderr") written[data.file] = ((written[data.file] ?? "") + data.message).slice(-4000);
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details?.type === "suite") continue;
    const path = [...names.slice(0, data.nesting), data.name];
    yield JSON.stringify({
      name: path.join(" > "), names: path, file: data.file, line: data.line, failed: type === "test:fail",
      skipped: data.skip !== undefined || data.todo !== undefined, error: errorOf(data.details),
      // A file that could not be loaded fails as a whole; why is in what its process wrote.
      written: data.details?.error?.exitCode === undefined ? undefined : (written[data.name] ?? written[data.file]),
    }) + "\n";
  }
}
