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
    const result = new URLSearchParams();
    for (const field of form.elements) {
      const value = field.type === "checkbox" ? String(Number(field.checked)) : field.value;
      if (field.name && value !== field.dataset.usual) result.append(field.name, value);
    }
    return result.toString();
  }

  async function load(path, query) {
    const reply = await fetch(`${path}?${query}`);
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
    if (!reply.ok) throw new Error(fresh.querySelector("[role=alert]")?.textContent ?? `The server answered ${reply.status}.`);
    // The corpus was made again: its handles and its thresholds are others.
    if (fresh.getElementById("view").dataset.publication !== form.dataset.publication) return location.replace(`/?${query}`);
    const onReason = document.activeElement.dataset.reason !== undefined;
    for (const part of fresh.querySelectorAll("[data-live]")) document.getElementById(part.id)?.replaceWith(part);
    if (onReason) (form.querySelector("[aria-current]") ?? form.querySelector("[data-reason]"))?.focus({ preventScroll: true });
    say("");
  }

  // One request at a time. While handles move it is for counts, and afterwards for pairs and exact counts.
  let busy = false, moved = 0;
  let requested = fields(), counted = requested, shown = requested;
  async function follow() {
    if (busy) return;
    busy = true;
    const slow = setTimeout(() => say(form.elements.q.value ? "Searching …" : "Counting …"), 500);
    try {
      for (let next = fields(); next !== shown; next = fields()) {
        requested = next;
        const rest = moved + 300 - Date.now();
        if (next !== counted) {
          await load("/counts", next);
          counted = next;
        } else if (rest > 0) {
          await new Promise((done) => setTimeout(done, rest));
        } else {
          // Not while a handle moves: browsers limit how often an address may change.
          history.replaceState(null, "", next ? `/?${next}` : "/");
          await load("/", next);
          shown = next;
        }
      }
    } catch (error) {
      say(error instanceof TypeError ? "No answer from the server. Is 'paraforge browse' still running?" : error.message, true);
      counted = shown = "?";
    } finally {
      clearTimeout(slow);
      busy = false;
      if (fields() !== requested) follow();
    }
  }
  function change() {
    moved = Date.now();
    follow();
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
        change();
      });
      numbers[side].addEventListener("input", () => { place(side); change(); });
      place(side);
    });
  }

  let typing;
  form.elements.q.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(change, 400); });
  form.addEventListener("change", change);
  form.addEventListener("submit", (event) => { event.preventDefault(); change(); });
  form.addEventListener("click", (event) => {
    const reason = event.target.closest("[data-reason]");
    if (event.target.id === "others") form.elements.draw.value = Number(form.elements.draw.value) + 1;
    if (reason) {
      form.elements.reason.value = reason.dataset.reason;
      document.getElementById("pairs").scrollIntoView();
    }
    if (reason || event.target.id === "others") change();
  });
  document.documentElement.dataset.ready = "1";
})();
