// Dark, light, or what the system has; kept in this browser.

export const THEMES = ["system", "dark", "light"];

export function getTheme() {
  const kept = localStorage.getItem("dari.theme");
  return THEMES.includes(kept) ? kept : "system";
}

export function setTheme(theme) {
  localStorage.setItem("dari.theme", theme);
  applyTheme();
  dispatchEvent(new Event("dari-theme"));
}

export function applyTheme() {
  const kept = getTheme();
  const dark = kept === "dark" || (kept === "system" && !matchMedia("(prefers-color-scheme: light)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export function switchTheme() {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}

/** Called after each change by a person, wherever it was made. */
export function onTheme(run, signal) {
  addEventListener("dari-theme", run, { signal });
}
