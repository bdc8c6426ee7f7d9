// Keeps the parts of a page that are marked `data-live` up to date. Everything works without it.
"use strict";

const EVERY = 2000;
const live = document.getElementById("live");
const refreshed = document.getElementById("refreshed");
let shows = true;

async function refresh() {
  if (document.hidden || !isOn()) return;
  let answer;
  try {
    answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    const text = await answer.text();
    if (isOn()) show(new DOMParser().parseFromString(text, "text/html"));
    if (!shows) refreshed.textContent = "The simulator answers again.";
    shows = true;
  } catch {
    if (shows) refreshed.textContent = "The simulator does not answer: what is shown is not up to date.";
    shows = false;
  }
  refreshed.classList.toggle("visually-hidden", shows);
}

function show(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(part.id);
    if (!now || now.innerHTML === part.innerHTML) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    part.replaceChildren(...now.childNodes);
    // Whoever uses the keyboard stays where they were.
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

function isOn() {
  return live.getAttribute("aria-pressed") === "true";
}

if (live && document.querySelector("main [data-live]")) {
  live.hidden = false;
  live.addEventListener("click", () => {
    live.setAttribute("aria-pressed", String(!isOn()));
    refresh();
  });
  const again = () => refresh().finally(() => setTimeout(again, EVERY));
  setTimeout(again, EVERY);
}

const copy = document.getElementById("copy");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const copied = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(document.getElementById("secret").textContent);
      copied.textContent = " Copied.";
    } catch {
      copied.textContent = " The browser did not copy it: select it.";
    }
  });
}

// A page that is opened again does not say again what was done before it was first shown.
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
}
