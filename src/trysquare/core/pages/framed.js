// Holds the page of another server. Its messages pass with the names that its tools and resources have here, and with
// its origin beside what it says; whatever else it asks for is refused.
const { server, html, tools, prefix, pages, resources, allow } = settings;
const label = `Page of the server ${server}`;
const header = document.querySelector("header");
const frame = document.querySelector("iframe");
header.textContent = label;
frame.title = label;
frame.setAttribute("allow", allow);

const labelled = (params) => ({
  ...params,
  content: [{ type: "text", text: `(${label})` }, ...(Array.isArray(params.content) ? params.content : [params.content ?? []].flat())],
});
const isWeb = (url) => /^https?:\/\//i.test(String(url));
const outgoing = {
  "tools/call": (params) => ({ ...params, name: Object.hasOwn(tools, params.name) ? tools[params.name] : prefix + params.name }),
  "resources/read": ({ uri, ...params }) => ({
    ...params, uri: /^ui:\/\//i.test(String(uri)) ? pages + String(uri).slice(5) : resources + uri,
  }),
  "ui/open-link": (params) => (isWeb(params.url) ? params : undefined),
  "ui/message": labelled,
  "ui/update-model-context": labelled,
  "ui/initialize": (params) => params,
  "ui/request-display-mode": (params) => params,
  "ui/notifications/initialized": (params) => params,
  "ui/notifications/size-changed": ({ height, ...params }) => {
    if (Number.isFinite(height)) frame.style.height = `${Math.min(Math.max(height, 40), 4000)}px`;
    return Number.isFinite(height) ? { ...params, height: height + header.offsetHeight } : params;
  },
  "notifications/message": (params) => params,
  "ping": (params) => params,
};

function send(data) {
  const { id, method, params } = data;
  if (method === undefined) return window.parent.postMessage(data, "*");
  const changed = Object.hasOwn(outgoing, method) ? outgoing[method](params ?? {}) : undefined;
  if (changed !== undefined) return window.parent.postMessage({ ...data, params: changed }, "*");
  if (id !== undefined) {
    const error = { code: -32601, message: `A page of a server cannot send this: ${String(method).slice(0, 80)}` };
    frame.contentWindow.postMessage({ jsonrpc: "2.0", id, error }, "*");
  }
}

window.addEventListener("message", ({ source, data }) => {
  if (data?.jsonrpc !== "2.0") return;
  if (source === frame.contentWindow) send(data);
  else if (source === window.parent) frame.contentWindow.postMessage(data, "*");
});
frame.srcdoc = html;
