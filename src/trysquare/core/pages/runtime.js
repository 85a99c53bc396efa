// How a page talks to the client that shows it: JSON-RPC over postMessage, as MCP Apps 2026-01-26 has it.
const app = (() => {
  const waiting = new Map();
  const listeners = { input: [], result: [], cancelled: [], context: [] };
  const last = {};
  let number = 0;
  let context = {};

  const post = (message) => window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const notify = (method, params = {}) => post({ method, params });
  const request = (method, params = {}) => new Promise((resolve, reject) => {
    number += 1;
    waiting.set(number, { resolve, reject });
    post({ id: number, method, params });
  });
  // A listener that comes late still gets what was said before.
  const on = (event) => (listener) => {
    listeners[event].push(listener);
    if (event in last) listener(last[event]);
  };
  const tell = (event, value) => {
    last[event] = value;
    listeners[event].forEach((listener) => listener(value));
  };

  function wear(changes) {
    context = { ...context, ...changes };
    const root = document.documentElement;
    if (context.theme) root.style.colorScheme = context.theme;
    for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
      if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
    }
    tell("context", context);
  }

  const events = {
    "ui/notifications/tool-input": (params) => tell("input", params.arguments ?? {}),
    "ui/notifications/tool-result": (params) => tell("result", params),
    "ui/notifications/tool-cancelled": (params) => tell("cancelled", params.reason ?? ""),
    "ui/notifications/host-context-changed": wear,
  };
  const answers = { ping: () => ({}), "ui/resource-teardown": () => ({}) };

  function settle({ id, result, error }) {
    const asked = waiting.get(id);
    waiting.delete(id);
    if (asked && error) asked.reject(Object.assign(new Error(error.message), { code: error.code, data: error.data }));
    else if (asked) asked.resolve(result);
  }

  window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent || data?.jsonrpc !== "2.0") return;
    const { id, method, params } = data;
    if (method === undefined) settle(data);
    else if (id === undefined) events[method]?.(params ?? {});
    else if (method in answers) post({ id, result: answers[method](params) });
    else post({ id, error: { code: -32601, message: `Method not found: ${method}` } });
  });

  function follow() {
    let known = "";
    new ResizeObserver(() => {
      const { width, height } = document.documentElement.getBoundingClientRect();
      const size = { width: Math.ceil(width), height: Math.ceil(height) };
      if (known === (known = `${size.width} ${size.height}`)) return;
      notify("ui/notifications/size-changed", size);
    }).observe(document.documentElement);
  }

  async function begin() {
    const host = await request("ui/initialize", {
      protocolVersion: "2026-01-26",
      appInfo: { name: document.title || "app", version: "1" },
      appCapabilities: { availableDisplayModes: ["inline"] },
    });
    wear(host.hostContext ?? {});
    notify("ui/notifications/initialized");
    follow();
    return host;
  }

  return {
    ready: new Promise((resolve, reject) => {
      // After the page's own scripts, so that its listeners and its title are there.
      document.addEventListener("DOMContentLoaded", () => begin().then(resolve, reject));
    }),
    get context() { return context; },
    onInput: on("input"),
    onResult: on("result"),
    onCancelled: on("cancelled"),
    onContext: on("context"),
    call: (name, values = {}) => request("tools/call", { name, arguments: values }),
    read: (uri) => request("resources/read", { uri }),
    openLink: (url) => request("ui/open-link", { url }),
    say: (text) => request("ui/message", { role: "user", content: [{ type: "text", text }] }),
    tellModel: (text) => request("ui/update-model-context", { content: [{ type: "text", text }] }),
    log: (data, level = "info") => notify("notifications/message", { level, data }),
    request,
  };
})();
