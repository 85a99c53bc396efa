// A chart of the rows in a call's structured content.
const outcome = document.querySelector("#outcome");
const WIDTH = 640, HEIGHT = 300, LEFT = 56, BOTTOM = 40, TOP = 12;
const COLOURS = ["#0b57d0", "#b3261e", "#146c2e", "#8e4ec6", "#a15c00", "#006a6a"];

function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Rows are a list of objects, a list of numbers, or an object of numbers, at the top or under the only list there is.
function rowsOf(content) {
  const value = content?.result ?? content;
  if (Array.isArray(value)) return value.map((row, at) => (row !== null && typeof row === "object" ? row : { at: at + 1, value: row }));
  if (value === null || typeof value !== "object") return [];
  const list = Object.values(value).find(Array.isArray);
  if (list) return rowsOf(list);
  return Object.entries(value).filter(([, one]) => typeof one === "number").map(([at, one]) => ({ at, value: one }));
}

function columns(rows) {
  const names = Object.keys(rows[0] ?? {});
  const numbers = names.filter((name) => rows.every((row) => typeof row[name] === "number" || row[name] == null));
  const x = settings.x ?? names.find((name) => !numbers.includes(name)) ?? names[0];
  const y = settings.y.length ? settings.y : numbers.filter((name) => name !== x);
  return { x, y };
}

function scale(rows, y) {
  const values = rows.flatMap((row) => y.map((name) => row[name] ?? 0));
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  const span = high - low || 1;
  return { low, high: low + span, at: (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / span) };
}

function axes(svg, rows, x, reach) {
  const step = (WIDTH - LEFT) / rows.length;
  for (let part = 0; part <= 4; part += 1) {
    const value = reach.low + ((reach.high - reach.low) * part) / 4, at = reach.at(value);
    svg.append(drawn("line", { x1: LEFT, x2: WIDTH, y1: at, y2: at, stroke: "currentColor", "stroke-opacity": 0.18 }));
    const label = value.toLocaleString(undefined, { maximumSignificantDigits: 4 });
    svg.append(drawn("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, label));
  }
  const every = Math.ceil(rows.length / 12);
  rows.forEach((row, at) => {
    const place = { x: LEFT + step * (at + 0.5), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" };
    if (at % every === 0) svg.append(drawn("text", place, String(row[x] ?? "").slice(0, 14)));
  });
  return step;
}

function bars(svg, rows, y, reach, step) {
  const width = (step * 0.8) / y.length;
  rows.forEach((row, at) => y.forEach((name, of) => {
    const value = row[name] ?? 0, top = Math.min(reach.at(value), reach.at(0));
    const left = LEFT + step * at + step * 0.1 + width * of;
    const height = Math.abs(reach.at(value) - reach.at(0));
    const bar = drawn("rect", { x: left, y: top, width, height, fill: COLOURS[of % COLOURS.length], "data-testid": "bar" });
    bar.append(drawn("title", {}, `${name}: ${value}`));
    svg.append(bar);
  }));
}

function lines(svg, rows, y, reach, step) {
  y.forEach((name, of) => {
    const points = rows.map((row, at) => `${LEFT + step * (at + 0.5)},${reach.at(row[name] ?? 0)}`).join(" ");
    const colour = COLOURS[of % COLOURS.length];
    svg.append(drawn("polyline", { points, fill: "none", stroke: colour, "stroke-width": 2, "data-testid": "line" }));
  });
}

function key(y) {
  const made = element("p");
  y.forEach((name, of) => {
    const mark = element("span", `■ ${name}  `);
    mark.style.color = COLOURS[of % COLOURS.length];
    made.append(mark);
  });
  return made;
}

app.onResult((result) => {
  const rows = rowsOf(result.structuredContent);
  const { x, y } = columns(rows);
  if (result.isError || !rows.length || !y.length) {
    outcome.replaceChildren(...resultElements(result));
    return;
  }
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${y.join(", ")} by ${x}` });
  const reach = scale(rows, y);
  const step = axes(svg, rows, x, reach);
  ({ bar: bars, line: lines })[settings.kind](svg, rows, y, reach, step);
  outcome.replaceChildren(svg, ...(y.length > 1 ? [key(y)] : []));
});
app.onContext(({ toolInfo }) => {
  const tool = toolInfo?.tool;
  document.querySelector("h1").textContent = settings.title ?? tool?.title ?? tool?.name ?? settings.tool;
});
