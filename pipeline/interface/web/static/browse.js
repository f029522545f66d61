// Handles on the histograms, and counts and pairs that follow them.
"use strict";
(() => {
  const form = document.getElementById("view");
  if (!form) return;
  const status = document.getElementById("status");
  const say = (text, problem = false) => {
    status.textContent = text;
    status.classList.toggle("problem", problem);
  };

  // The address of what is on screen: only what differs from the published corpus.
  function fields() {
    const found = new URLSearchParams();
    for (const one of form.elements) {
      const box = one.type === "checkbox";
      const value = box && one.name !== "source" ? String(Number(one.checked)) : one.value;
      if (one.name === "source" ? one.checked : one.name && value !== one.dataset.usual) found.append(one.name, value);
    }
    return found.toString();
  }

  async function load(path, query) {
    const reply = await fetch(`${path}?${query}`, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
    if (!reply.ok) throw new Error(fresh.querySelector("[role=alert]")?.textContent ?? `The server answered ${reply.status}.`);
    return fresh;
  }
  function replace(fresh) {
    for (const one of fresh.querySelectorAll("[data-live]")) {
      const old = document.getElementById(one.id);
      const focused = old?.contains(document.activeElement) && document.activeElement.dataset.reason !== undefined;
      old?.replaceWith(one);
      if (focused) (one.querySelector("[aria-current]") ?? one.querySelector("button"))?.focus({ preventScroll: true });
    }
  }

  // One request for counts at a time: a handle that moves meanwhile asks again with its last place.
  let counting = false, shown = fields(), shownPairs = shown, timer;
  async function follow() {
    clearTimeout(timer);
    timer = setTimeout(settle, 300);
    if (counting) return;
    counting = true;
    const slow = setTimeout(() => say(form.elements.q.value ? "Searching …" : "Counting …"), 500);
    try {
      for (let next = fields(); next !== shown; next = fields()) {
        replace(await load("/counts", next));
        shown = next;
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
    if (query === shownPairs) return;
    try {
      const fresh = await load("/", query);
      if (query === fields()) { replace(fresh); shownPairs = query; }
    } catch { /* the counts say what is wrong */ }
  }

  for (const score of document.querySelectorAll(".score")) {
    const ends = [Number(score.dataset.low), Number(score.dataset.high)];
    const numbers = [...score.querySelectorAll("input[type=number]")];
    const title = score.querySelector("legend").textContent;
    const value = (side) => numbers[side].value === "" ? ends[side] : Number(numbers[side].value);
    const handles = numbers.map((number, side) => {
      const handle = document.createElement("input");
      Object.assign(handle, { type: "range", min: ends[0], max: ends[1], step: score.dataset.step, autocomplete: "off" });
      handle.setAttribute("aria-label", `${side ? "Highest" : "Lowest"} ${title} kept`);
      score.querySelector(".plot").append(handle);
      return handle;
    });
    const place = (side) => {
      handles[side].value = value(side);
      handles[side].setAttribute("aria-valuetext", numbers[side].value || (side ? "no upper bound" : "no lower bound"));
      // Both at one end: the one that can still move lies on top.
      handles[0].style.zIndex = value(0) > (ends[0] + ends[1]) / 2 ? 1 : 0;
    };
    handles.forEach((handle, side) => {
      handle.addEventListener("input", () => {
        // One handle does not pass the other one.
        const next = Math[side ? "max" : "min"](Number(handle.value), value(1 - side));
        numbers[side].value = Math.abs(next - ends[side]) < 1e-9 ? "" : String(Number(next.toPrecision(10)));
        place(side);
        follow();
      });
      numbers[side].addEventListener("input", () => { place(side); follow(); });
      place(side);
    });
  }

  let typing;
  form.elements.q.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(follow, 400); });
  form.addEventListener("change", (event) => { if (event.target.matches("[type=checkbox], select")) follow(); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typing); follow(); });
  form.addEventListener("click", (event) => {
    const reason = event.target.closest("[data-reason]");
    if (event.target.id === "others") form.elements.draw.value = Number(form.elements.draw.value) + 1;
    if (reason) {
      form.elements.reason.value = reason.dataset.reason;
      form.elements.order.value = "random";
      document.getElementById("pairs").scrollIntoView();
    }
    if (reason || event.target.id === "others") follow();
  });
  document.documentElement.dataset.ready = "1";
})();
