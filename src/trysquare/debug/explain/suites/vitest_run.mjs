// Runs vitest in a project by its public API, with a setup file added to those of the project's configuration.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [root, setup, report, ...words] = process.argv.slice(2);
const resolve = createRequire(`${root}/package.json`).resolve;
const { parseCLI, startVitest } = await import(pathToFileURL(resolve("vitest/node")).href);
const { filter, options } = parseCLI(["vitest", "run", ...words]);
const run = await startVitest(
  "test",
  filter,
  { ...options, root, run: true, watch: false, reporters: ["json"], outputFile: report, coverage: { enabled: false } },
  { test: { setupFiles: [setup], globals: true, fileParallelism: false } },
);
await run?.close();
