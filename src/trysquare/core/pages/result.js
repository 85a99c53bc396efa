// What a call brought, as elements. Values become text only: a page never takes markup from a tool.
function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function valueText(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function pairs(values) {
  const table = element("table");
  for (const [name, value] of Object.entries(values)) {
    const row = element("tr");
    row.append(element("th", name), element("td", valueText(value)));
    table.append(row);
  }
  return table;
}

function aboutOf(result) {
  return result?._meta?.["trysquare/result"] ?? {};
}

function resultElements(result) {
  const made = [];
  const about = aboutOf(result);
  if (result.isError) made.push(element("p", about.code ?? "The call failed.", "bad"));
  for (const block of result.content ?? []) {
    if (block.type === "text") made.push(element("pre", block.text));
    else if (block.type === "image") {
      const picture = element("img");
      picture.src = `data:${block.mimeType};base64,${block.data}`;
      picture.style.maxWidth = "100%";
      made.push(picture);
    } else made.push(element("p", `[${block.type}]`));
  }
  return made;
}
