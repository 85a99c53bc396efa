// A call that a person has to agree to: what it is, and how it stands. The page decides nothing: a client makes no
// difference between what a page calls and what its model calls, so agreement comes from the client's own question,
// from the console or from a terminal.
const state = document.querySelector("#state");
const details = document.querySelector("#arguments");
const outcome = document.querySelector("#outcome");
const again = document.querySelector("#again");
const open = document.querySelector("#open");
let given = {}, tool = "", page = "";

const TEXTS = {
  waiting: "Runs once you agree. Your client, the console or a terminal asks you; this page cannot agree for you.",
  done: "The call ran.",
  refused: "You refused, and nothing was done.",
  pending: "Not decided yet. Agree in the console, or run this command in your own terminal. Then send the call again.",
  failed: "The call ended without running.",
};

function stand(name, className) {
  state.dataset.state = name;
  state.textContent = TEXTS[name];
  state.className = className ?? "";
}

function show(result) {
  const about = aboutOf(result), approval = about.approval ?? {};
  const rest = resultElements(result);
  again.hidden = open.hidden = true;
  if (!result.isError) stand("done", "good");
  else if (about.code === "CONSENT_REFUSED") stand("refused", "bad");
  else if (approval.command) {
    stand("pending");
    rest.unshift(element("pre", approval.command));
    page = approval.page ?? "";
    again.hidden = false;
    open.hidden = page === "";
  } else stand("failed", "bad");
  outcome.replaceChildren(...rest);
}

again.addEventListener("click", async () => {
  again.disabled = true;
  stand("waiting");
  try {
    show(await app.call(tool, given));
  } catch (error) {
    outcome.replaceChildren(element("p", error.message, "bad"));
  } finally {
    again.disabled = false;
  }
});
open.addEventListener("click", () => app.openLink(page).catch((error) => {
  outcome.append(element("p", `${error.message} Open ${page} yourself.`, "bad"));
}));

stand("waiting");
app.onContext(({ toolInfo }) => {
  tool = toolInfo?.tool?.name ?? tool;
  document.querySelector("h1").textContent = toolInfo?.tool?.title ?? (tool || "A call that needs your agreement");
});
app.onInput((values) => {
  given = values;
  details.replaceChildren(pairs(values));
});
app.onResult(show);
app.onCancelled(() => stand("failed", "bad"));
