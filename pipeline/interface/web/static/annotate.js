// Keyboard shortcuts, and saving every answer at once.
"use strict";
(() => {
  const form = document.getElementById("grading");
  if (!form) return;
  const [status, comment, next, shortcuts] = ["status", "comment", "next", "shortcuts"].map((id) => document.getElementById(id));
  const fieldsets = [...form.querySelectorAll("fieldset")];
  const say = (text, problem = false) => {
    status.textContent = text;
    status.classList.toggle("problem", problem);
  };
  const fields = () => new URLSearchParams(new FormData(form)).toString();
  const unanswered = () => fieldsets.find((field) => !field.querySelector("input:checked"));
  const current = () => fieldsets.find((field) => field.contains(document.activeElement)) ?? unanswered();
  const mark = () => fieldsets.forEach((field) => field.classList.toggle("asked", field === current()));

  // Answers are sent one after the other, so that the newest arrives last.
  let saved = fields(), queue = Promise.resolve();
  async function post() {
    while (fields() !== saved) {
      const sent = fields();
      try {
        const reply = await fetch(location.pathname, { method: "POST", body: new URLSearchParams(sent), keepalive: true });
        if (reply.status >= 500) {
          const page = new DOMParser().parseFromString(await reply.text(), "text/html");
          throw new Error(page.querySelector("[role=alert]")?.textContent ?? `The server answered ${reply.status}.`);
        }
        // A client error stays the same on a second try.
        if (!reply.ok) return say(`Not saved (${reply.status}). Load the page again.`, true);
        const { graded } = await reply.json();
        document.getElementById("graded").textContent = graded;
        document.getElementById("progress").value = graded;
        saved = sent;
        say("Saved.");
      } catch (error) {
        const reason = error instanceof TypeError ? "No answer from the server." : error.message;
        say(`Not saved yet. ${reason} Trying again; keep this page open.`, true);
        await new Promise((done) => setTimeout(done, 1000));
      }
    }
  }
  const save = () => (queue = queue.then(post));
  let leaving = false;
  async function leave(go) {
    leaving = true;  // Ignore keys until the next page is loaded.
    await save();
    if (fields() === saved) go();
    else leaving = false;
  }
  addEventListener("beforeunload", (event) => { if (fields() !== saved) event.preventDefault(); });
  // Send an answer that is still waiting for an earlier one to be saved.
  addEventListener("pagehide", () => { if (fields() !== saved) navigator.sendBeacon(location.pathname, new URLSearchParams(fields())); });

  form.addEventListener("change", () => { mark(); save(); });
  let typing;
  comment.addEventListener("input", () => {
    comment.name = "comment";  // Without a name it is not sent: another page may have changed it.
    clearTimeout(typing);
    typing = setTimeout(save, 400);
  });
  form.addEventListener("focusin", mark);
  form.addEventListener("focusout", mark);
  form.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    leave(() => location.assign(link.href));
  });
  const undoing = document.getElementById("undoing");
  undoing.addEventListener("submit", (event) => {
    event.preventDefault();
    leave(() => undoing.submit());
  });

  function choose(value) {
    const radio = current()?.querySelector(`input[value="${value}"]`);
    if (!radio) return;
    if (!radio.checked) radio.click();
    (unanswered()?.querySelector("input") ?? next).focus();
  }
  addEventListener("keydown", (event) => {
    const target = event.target;
    if (leaving || event.isComposing) return;
    if (target === comment) {
      if (event.key === "Escape") { event.preventDefault(); document.getElementById("pair").focus(); }
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
    else if (key === "enter" && !target.closest("a, button, summary")) next.click();
    else return;
    event.preventDefault();
  });
  mark();
  document.getElementById("pair").focus({ preventScroll: true });
})();
