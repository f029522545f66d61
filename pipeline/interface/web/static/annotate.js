// Keys, and saving as one goes.
"use strict";
(() => {
  const form = document.getElementById("grading");
  if (!form) return;
  const { identity, annotator, place } = form.dataset;
  const fieldsets = [...form.querySelectorAll("fieldset")];
  const status = document.getElementById("status");
  const comment = document.getElementById("comment");
  const saveButton = document.getElementById("save");
  const shortcuts = document.getElementById("shortcuts");
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

  // A browser may refuse storage: everything but the safety net below works without.
  const memory = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* see above */ } },
    remove(key) { try { localStorage.removeItem(key); } catch { /* see above */ } },
    keys() { try { return Object.keys(localStorage); } catch { return []; } },
  };
  const prefix = `paraforge:${identity}:${annotator}:`;
  // Not form.action: that is the buttons, which have this name.
  const addressOf = (number) => form.getAttribute("action").replace(/\d+$/, number);

  const say = (text, problem = false) => {
    status.textContent = text;
    status.classList.toggle("problem", problem);
  };
  const fields = () => {
    const data = new FormData(form);
    return { paraphrase: data.get("paraphrase") ?? "", fluency: data.get("fluency") ?? "", comment: comment.value };
  };
  const unanswered = () => fieldsets.find((one) => !one.querySelector("input:checked"));
  const asked = () => fieldsets.find((one) => one.contains(document.activeElement)) ?? unanswered();
  const mark = () => fieldsets.forEach((one) => one.classList.toggle("asked", one === asked()));

  async function post(number, values, action) {
    const body = new URLSearchParams({ ...values, action, token: form.elements.token.value });
    const reply = await fetch(addressOf(number), { method: "POST", body, keepalive: true });
    // 4xx: trying the same again cannot help. A 403 means that the cookie is gone: a new page has a new one.
    if (reply.status === 403) { location.reload(); return pause(60_000); }
    if (reply.status >= 500) throw new Error(String(reply.status));
    if (!(reply.headers.get("Content-Type") ?? "").includes("json")) return { problem: `Not saved (${reply.status}).` };
    return reply.json();
  }

  // Posts go one after the other, because the newest answer is the one that counts.
  let queue = Promise.resolve();
  let saved = JSON.stringify(fields());
  // Whether what is missing has been said: that stands until a grade is given, also when a draft arrives meanwhile.
  let reminded = false;
  function send(action) {
    const turn = queue.then(async () => {
      for (;;) {
        const values = fields();
        const text = JSON.stringify(values);
        if (action === "draft" && text === saved) return {};
        // Kept here until the server has it: also a closed tab loses nothing while the server is away.
        memory.set(prefix + place, text);
        try {
          const reply = await post(place, values, action);
          if (reply.problem) { say(reply.problem, true); return reply; }
          saved = text;
          if (JSON.stringify(fields()) === text) memory.remove(prefix + place);
          if (reply.graded !== undefined) showProgress(reply.graded);
          if (action === "draft" && !reminded) say("Saved.");
          return reply;
        } catch {
          say("Not saved yet: no answer from the server. Trying again; nothing is lost.", true);
          await pause(1000);
        }
      }
    });
    queue = turn.catch(() => {});
    return turn;
  }
  function showProgress(graded) {
    document.getElementById("graded").textContent = graded;
    document.getElementById("progress").value = graded;
  }

  async function leave(action) {
    if (action === "next" && unanswered()) {
      reminded = true;
      say("Both grades are needed to continue.", true);
      unanswered().querySelector("input").focus();
      return;
    }
    const reply = await send(action);
    if (reply.address) location.assign(reply.address);
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    leave(event.submitter?.value || "next");
  });
  form.addEventListener("change", () => { reminded = false; mark(); send("draft"); });
  let typing;
  comment.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => send("draft"), 400);
  });
  addEventListener("pagehide", () => {
    const values = fields();
    const text = JSON.stringify(values);
    if (text === saved) return;
    memory.set(prefix + place, text);
    post(place, values, "draft").then(() => memory.remove(prefix + place), () => {});
  });
  form.addEventListener("focusin", mark);
  form.addEventListener("focusout", mark);

  function choose(value) {
    const fieldset = asked();
    const radio = fieldset?.querySelector(`input[value="${value}"]`);
    if (!radio) return;
    if (!radio.checked) radio.click();
    const open = unanswered();
    if (open) open.querySelector("input").focus();
    else saveButton.focus();
  }
  addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.isComposing) return;
    if (target === comment) {
      if (event.key === "Escape") { event.preventDefault(); document.getElementById("pair").focus(); }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); leave("next"); }
      return;
    }
    if (!shortcuts.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    // The place of the key and not its character: on Czech and French keyboards digits need Shift.
    const digit = /^(?:Digit|Numpad)([1-3])$/.exec(event.code);
    const key = event.key.toLowerCase();
    if (digit) choose(digit[1]);
    else if (key === "b") document.getElementById("back")?.click();
    else if (key === "u") document.getElementById("undo").click();
    else if (key === "c") comment.focus();
    else if (key === "enter" && !target.closest("a, button, summary")) leave("next");
    else return;
    event.preventDefault();
  });

  // What a page that was closed in the server's absence could not save.
  async function recover() {
    for (const key of memory.keys().filter((one) => one.startsWith(prefix))) {
      const number = key.slice(prefix.length);
      let values;
      try { values = JSON.parse(memory.get(key)); } catch { memory.remove(key); continue; }
      if (number === place) {
        for (const fieldset of fieldsets) {
          const radio = fieldset.querySelector(`input[value="${Number(values[fieldset.id])}"]`);
          if (radio) radio.checked = true;
        }
        comment.value = values.comment ?? "";
        if (JSON.stringify(fields()) === saved) memory.remove(key);
        else send("draft");
        mark();
      } else {
        try {
          const reply = await post(number, values, "draft");
          memory.remove(key);
          if (reply.graded !== undefined) showProgress(reply.graded);
        } catch { /* the next page tries again */ }
      }
    }
  }

  shortcuts.checked = memory.get("paraforge:shortcuts") !== "off";
  shortcuts.addEventListener("change", () => memory.set("paraforge:shortcuts", shortcuts.checked ? "on" : "off"));
  mark();
  document.getElementById("pair").focus({ preventScroll: true });
  recover();
})();
