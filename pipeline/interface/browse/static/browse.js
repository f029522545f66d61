// Handles on the histograms, and counts and pairs that follow them. Without this script the page is a form with
// number fields that does the same with its button.
"use strict";
(() => {
  const form = document.getElementById("view");
  const status = document.getElementById("status");
  const say = (text, problem = false) => {
    status.textContent = text;
    status.classList.toggle("problem", problem);
  };
  // Rounded to the step, written without the noise of binary fractions.
  const written = (value) => String(Number(value.toPrecision(10)));

  // The address of what is on screen: only what differs from the published corpus.
  function fields() {
    const found = new URLSearchParams();
    for (const one of form.elements) {
      if (!one.name || one.type === "hidden") continue;
      if (one.type === "checkbox") {
        if (one.name === "source") { if (one.checked) found.append("source", one.value); }
        else if (one.checked !== (one.dataset.usual === "1")) found.append(one.name, one.checked ? "1" : "0");
      } else if (one.dataset.usual !== undefined) {
        if (one.value !== one.dataset.usual) found.append(one.name, one.value);
      } else if (one.value && !(one.name === "order" && one.value === "random")) found.append(one.name, one.value);
    }
    if (form.elements.reason.value) found.append("reason", form.elements.reason.value);
    if (form.elements.draw.value !== "1") found.append("draw", form.elements.draw.value);
    return found.toString();
  }

  function replace(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const one of fresh.querySelectorAll("[data-live]")) {
      const old = document.getElementById(one.id);
      if (!old) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement.dataset.reason : undefined;
      old.replaceWith(one);
      if (focus !== undefined) (one.querySelector("[aria-current]") ?? one.querySelector("a"))?.focus({ preventScroll: true });
    }
  }

  async function load(path, query) {
    const reply = await fetch(`${path}?${query}`, { headers: { Accept: "text/html" } });
    const text = await reply.text();
    if (reply.ok) return text;
    const page = new DOMParser().parseFromString(text, "text/html");
    throw new Error(page.querySelector("[role=alert]")?.textContent ?? `The server answered ${reply.status}.`);
  }

  // One request for counts at a time: a handle that moves meanwhile asks again with its last place.
  let counting = false, shown = fields(), shownPairs = shown, timer;
  async function follow() {
    const query = fields();
    clearTimeout(timer);
    timer = setTimeout(settle, 300);
    if (counting) return;
    counting = true;
    const slow = setTimeout(() => say(form.elements.q.value ? "Searching …" : "Counting …"), 500);
    try {
      for (let next = query; next !== shown; next = fields()) {
        const started = performance.now();
        const text = await load("/counts", next);
        replace(text);
        shown = next;
        document.documentElement.dataset.milliseconds = String(Math.round(performance.now() - started));
        say("");
      }
    } catch (error) {
      say(error instanceof TypeError ? "No answer from the server. Is 'paraforge browse' still running?" : error.message, true);
      shown = "";
    } finally {
      clearTimeout(slow);
      counting = false;
    }
  }
  // Not while a handle moves: browsers limit how often an address may change.
  async function settle() {
    const query = fields();
    history.replaceState(null, "", query ? `/?${query}` : "/");
    const others = new URLSearchParams(query);
    others.set("draw", String(Number(form.elements.draw.value) + 1));
    document.getElementById("others").href = `/?${others}`;
    if (query === shownPairs) return;
    try {
      const text = await load("/pairs", query);
      if (query === fields()) { replace(text); shownPairs = query; }
    } catch { /* the counts say what is wrong */ }
  }

  function addHandles(score) {
    const { low, high, step, whole } = score.dataset;
    const reach = whole === "1" ? 0.5 : 0;
    const ends = [Number(low) + reach, Number(high) - reach];
    const numbers = [...score.querySelectorAll("input[type=number]")];
    const title = score.querySelector("legend").textContent;
    const handles = numbers.map((number, side) => {
      const handle = document.createElement("input");
      handle.type = "range";
      [handle.min, handle.max, handle.step] = [ends[0], ends[1], Number(step)];
      handle.setAttribute("aria-label", `${side ? "Highest" : "Lowest"} ${title} kept`);
      handle.autocomplete = "off";
      score.querySelector(".plot").append(handle);
      return handle;
    });
    const describe = (side) => {
      const none = side ? "no upper bound" : "no lower bound";
      handles[side].setAttribute("aria-valuetext", numbers[side].value === "" ? none : numbers[side].value);
      // Both at one end: the one that can still move lies on top.
      handles[0].style.zIndex = Number(handles[0].value) > (ends[0] + ends[1]) / 2 ? 1 : 0;
    };
    const place = (side) => {
      handles[side].value = numbers[side].value === "" ? ends[side] : Number(numbers[side].value);
      describe(side);
    };
    handles.forEach((handle, side) => {
      handle.addEventListener("input", () => {
        let value = Number(handle.value);
        // One handle does not pass the other one.
        const other = numbers[1 - side].value === "" ? ends[1 - side] : Number(numbers[1 - side].value);
        if (side ? value < other : value > other) value = other;
        handle.value = value;
        numbers[side].value = Math.abs(value - ends[side]) < 1e-9 ? "" : written(value);
        describe(side);
        follow();
      });
      numbers[side].addEventListener("input", () => { place(side); follow(); });
      place(side);
    });
  }
  document.querySelectorAll(".score").forEach(addHandles);

  let typing;
  form.elements.q.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(follow, 400); });
  form.addEventListener("change", (event) => {
    if (event.target.type === "checkbox" || event.target.tagName === "SELECT") follow();
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typing); follow(); });
  document.getElementById("others").addEventListener("click", (event) => {
    event.preventDefault();
    form.elements.draw.value = String(Number(form.elements.draw.value) + 1);
    follow();
  });
  // Links of reasons are in pieces that are replaced.
  form.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-reason]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    form.elements.reason.value = link.dataset.reason;
    form.elements.order.value = "random";
    follow();
    document.getElementById("pairs").scrollIntoView();
  });
  function copyBy(id, text) {
    const button = document.getElementById(id);
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(text()); say("Copied."); }
      catch { say("The browser does not allow copying here.", true); }
    });
  }
  copyBy("copy-link", () => location.href);
  copyBy("copy-section", () => document.getElementById("section").textContent);
  document.getElementById("show").hidden = true;
  document.documentElement.dataset.ready = "1";
})();
