// Keys, clocks, focus and passkeys. Everything else is done by the server and htmx.
"use strict";
(() => {
  const cards = () => [...document.querySelectorAll(".question")];
  const isTyping = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable]");

  function span(seconds) {
    if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
    if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
    if (seconds < 86400) return `${Math.round(seconds / 3600)} h`;
    return `${Math.round(seconds / 86400)} d`;
  }

  function tick() {
    const now = Date.now() / 1000;
    for (const each of document.querySelectorAll("time[data-since]")) each.textContent = span(now - each.dataset.since);
    for (const each of document.querySelectorAll("time[data-until]")) each.textContent = span(each.dataset.until - now);
  }
  setInterval(() => { if (!document.hidden) tick(); }, 5000);

  // Two keys decide: one that says how, and Enter.
  function arm(card, isRefusal) {
    const button = card.querySelector(isRefusal ? "button.refuse" : "button.approve");
    const reason = card.querySelector("input[name=reason]");
    if (!button) return;
    card.dataset.armed = isRefusal ? "refuse" : "approve";
    (isRefusal && reason ? reason : button).focus();
  }

  function move(by) {
    const all = cards();
    const at = all.findIndex((each) => each.contains(document.activeElement));
    const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + by))];
    if (next) next.focus();
  }

  document.addEventListener("keydown", (event) => {
    const inReason = event.target instanceof Element && event.target.matches("input[name=reason]");
    const card = event.target instanceof Element ? event.target.closest(".question") : null;
    if (inReason && event.key === "Enter") {
      // Without a choice before it, Enter in the reason decides nothing.
      event.preventDefault();
      const button = card.dataset.armed && card.querySelector(`button.${card.dataset.armed}`);
      if (button) button.click();
      return;
    }
    if (inReason && event.key === "Escape") { delete card.dataset.armed; card.focus(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "j" || event.key === "k") { event.preventDefault(); move(event.key === "j" ? 1 : -1); return; }
    if (event.key === "a" || event.key === "r") {
      const chosen = card || cards()[0];
      if (chosen) { event.preventDefault(); arm(chosen, event.key === "r"); }
    }
  });

  // The number that waits is in the title too.
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const count = document.getElementById("count");
    if (!count || event.detail.target.id !== "count") return;
    const plain = document.title.replace(/^\(\d+\) /, "");
    document.title = count.hidden ? plain : `(${count.lastChild.textContent.trim()}) ${plain}`;
  });

  // A passkey signs the digest of the text that the server wrote for exactly this question.
  const why = (error) => (error && error.message) || String(error);

  async function sign(button) {
    const form = button.form, card = form.closest(".question"), said = document.getElementById("said");
    button.disabled = true;
    said.textContent = "";
    try {
      const sent = new URLSearchParams({ csrf: form.elements.csrf.value, question: form.elements.question.value });
      const response = await fetch("/needs/statement", { method: "POST", body: sent });
      const asked = await response.json();
      if (asked.error) throw new Error(asked.error);
      const shown = card.querySelector(".statement");
      shown.textContent = asked.text;
      shown.hidden = false;
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(asked.options);
      const answer = await navigator.credentials.get({ publicKey });
      form.elements.statement.value = asked.text;
      form.elements.answer.value = JSON.stringify(answer.toJSON());
      const choice = document.createElement("input");
      Object.assign(choice, { type: "hidden", name: "choice", value: button.dataset.sign });
      form.append(choice);
      form.requestSubmit();
      choice.remove();
    } catch (error) {
      said.textContent = `Not signed: ${why(error)}`;
    } finally {
      button.disabled = false;
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("button[data-sign]");
    if (button) sign(button);
  });

  const enroll = document.querySelector("form[data-create]");
  if (enroll) enroll.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wrong = enroll.querySelector(".wrong");
    wrong.textContent = "";
    try {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(enroll.dataset.create));
      const made = await navigator.credentials.create({ publicKey });
      enroll.elements.credential.value = JSON.stringify(made.toJSON());
      enroll.submit();
    } catch (error) {
      wrong.textContent = `Not registered: ${why(error)}`;
    }
  });

  // A form with lists and several shapes is drawn by the server, with everything that was filled in.
  function redraw(element) {
    const form = element.form, values = new FormData(form);
    if (element.matches("button")) values.set(element.name, element.value);
    const sent = new URLSearchParams([...values].filter(([, value]) => typeof value === "string"));
    htmx.ajax("POST", form.action.replace("/call/", "/form/"), {
      target: "#fields", values: Object.fromEntries(sent), swap: "innerHTML",
    });
  }
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("button[data-form]");
    if (button) { event.preventDefault(); event.stopPropagation(); redraw(button); return; }
    const copying = event.target instanceof Element && event.target.closest("button[data-copy]");
    if (copying) copy(copying);
    const again = event.target instanceof Element && event.target.closest("button[data-replay]");
    if (again) replay(again);
  }, true);
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-form]")) redraw(event.target);
    if (event.target.matches("input[data-file]")) read(event.target);
  });

  // The content of a file goes into the field above it, as text or as base64.
  function read(chooser) {
    const into = document.getElementById(chooser.dataset.into), reader = new FileReader();
    reader.addEventListener("load", () => { into.value = reader.result.replace(/^data:[^,]*,/, ""); });
    if (!chooser.files.length) return;
    if (chooser.dataset.file === "text") reader.readAsText(chooser.files[0]);
    else reader.readAsDataURL(chooser.files[0]);
  }

  // A replay shows the recorded steps of a job one after the other. Nothing is called.
  async function replay(button) {
    const steps = [...document.querySelectorAll(".timeline > li")];
    const pause = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 900;
    for (const step of steps) { step.hidden = true; step.querySelector("details").open = false; }
    for (const [number, step] of steps.entries()) {
      if (!button.isConnected) return;
      step.hidden = false;
      step.querySelector("details").open = true;
      step.scrollIntoView({ block: "nearest" });
      if (number + 1 < steps.length) await new Promise((done) => { setTimeout(done, pause); });
    }
  }

  async function copy(button) {
    const said = document.getElementById("said");
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      said.textContent = "Copied.";
    } catch (error) {
      said.textContent = `Not copied: ${why(error)}`;
    }
  }

  // On a phone the parts are wider than the screen, and a result is below its form.
  const current = document.querySelector("nav [aria-current]");
  if (current) current.scrollIntoView({ block: "nearest", inline: "center" });
  document.addEventListener("htmx:afterSettle", (event) => {
    const result = event.detail.target;
    if (result && result.id === "result" && result.getBoundingClientRect().top > innerHeight) result.scrollIntoView();
  });

  // Whoever decides or writes with the keyboard goes on where they were, or with the next question, as the list changes.
  let active = null, place = 0;
  const isNeeds = (event) => event.detail.target && event.detail.target.id === "needs";
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!(event.detail.elt instanceof Element && event.detail.elt.matches(".decide"))) return;
    for (const each of document.querySelectorAll("#said")) each.textContent = "";
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const card = isNeeds(event) && document.activeElement && document.activeElement.closest(".question");
    if (card) [active, place] = [document.activeElement, cards().indexOf(card)];
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    tick();
    if (!isNeeds(event) || !active) return;
    const all = cards(), main = document.getElementById("main");
    const next = active.isConnected ? active : all[Math.min(place, all.length - 1)] || main;
    active = null;
    next.focus({ preventScroll: next === main });
  });
})();
