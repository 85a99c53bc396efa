// The form of a tool: a field for each argument, filled in with those of the call, and what the call brought.
const form = document.querySelector("form");
const fields = document.querySelector("#fields");
const outcome = document.querySelector("#outcome");
const run = document.querySelector("#run");
let tool = { name: settings.tool, title: settings.title, inputSchema: settings.schema };

function plain(schema) {
  if (schema.$ref) {
    const parts = schema.$ref.replace(/^#\//, "").split("/");
    const found = parts.reduce((at, part) => at?.[part.replace(/~1/g, "/").replace(/~0/g, "~")], tool.inputSchema);
    return plain({ ...found, ...schema, $ref: undefined });
  }
  const choices = (schema.anyOf ?? schema.oneOf ?? []).filter((each) => each.type !== "null");
  if (choices.length === 1) return plain({ ...schema, ...choices[0], anyOf: undefined, oneOf: undefined });
  if (Array.isArray(schema.type)) {
    const kinds = schema.type.filter((kind) => kind !== "null");
    return { ...schema, type: kinds.length === 1 ? kinds[0] : undefined };
  }
  return schema;
}

function select(values, isRequired) {
  const made = element("select");
  if (!isRequired) made.append(element("option", ""));
  values.forEach((value) => made.append(element("option", valueText(value))));
  return made;
}

// An input for a schema, how a value is put into it, and how it is read: undefined where it is left out.
function field(schema, isRequired) {
  const written = (input) => ({ input, put: (value) => { input.value = valueText(value); } });
  if (schema.enum) {
    const given = written(select(schema.enum, isRequired));
    return { ...given, get: () => schema.enum.find((each) => valueText(each) === given.input.value) };
  }
  const input = element("input");
  if (schema.type === "boolean" && isRequired) {
    input.type = "checkbox";
    return { input, put: (value) => { input.checked = value === true; }, get: () => input.checked };
  }
  if (schema.type === "boolean") {
    const given = written(select([true, false], false));
    return { ...given, get: () => ({ true: true, false: false })[given.input.value] };
  }
  if (schema.type === "number" || schema.type === "integer") {
    input.type = "number";
    input.step = schema.type === "integer" ? "1" : "any";
    return { ...written(input), get: () => (input.value === "" ? undefined : Number(input.value)) };
  }
  if (schema.type === "string") {
    input.type = { date: "date", email: "email" }[schema.format] ?? "text";
    const text = schema.maxLength > 200 || !schema.maxLength && input.type === "text" ? element("textarea") : input;
    if (text !== input) text.rows = 1;
    return { ...written(text), get: () => (text.value === "" && !isRequired ? undefined : text.value) };
  }
  const whole = element("textarea");
  whole.placeholder = schema.type === "array" ? "[…] as JSON" : "{…} as JSON";
  return { ...written(whole), get: () => (whole.value.trim() === "" ? undefined : JSON.parse(whole.value)) };
}

let made = {};
function draw() {
  document.querySelector("h1").textContent = tool.title ?? tool.name;
  const { properties = {}, required = [] } = tool.inputSchema ?? {};
  made = {};
  fields.replaceChildren();
  for (const [name, about] of Object.entries(properties)) {
    const schema = plain(about);
    const one = field(schema, required.includes(name));
    made[name] = one;
    one.input.name = name;
    one.input.dataset.testid = `field-${name}`;
    one.input.required = required.includes(name) && one.input.type !== "checkbox";
    if (schema.default !== undefined && schema.default !== null) one.put(schema.default);
    const label = element("label");
    label.append(element("span", schema.title ?? name));
    if (schema.description) label.append(element("small", schema.description));
    label.append(one.input);
    fields.append(label);
  }
}

function values() {
  const given = {};
  for (const [name, one] of Object.entries(made)) {
    let value;
    try {
      value = one.get();
    } catch {
      throw new Error(`${name} is not JSON. Write it as JSON, such as ["a", "b"].`);
    }
    if (value !== undefined) given[name] = value;
  }
  return given;
}

function show(result) {
  outcome.replaceChildren(...resultElements(result));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  run.disabled = true;
  try {
    const given = values();
    outcome.replaceChildren(element("p", "Running. Where the call needs your agreement, your client or the console asks."));
    show(await app.call(tool.name, given));
  } catch (error) {
    outcome.replaceChildren(element("p", error.message, "bad"));
  } finally {
    run.disabled = false;
  }
});

draw();
app.onContext(({ toolInfo }) => {
  if (toolInfo?.tool?.name !== tool.name || !tool.isServed) {
    tool = { ...tool, ...toolInfo?.tool, isServed: Boolean(toolInfo) };
    draw();
  }
});
app.onInput((given) => {
  for (const [name, value] of Object.entries(given)) made[name]?.put(value);
});
app.onResult(show);
