// Numbers and times as people read them, in the language of the page.

import { Made, bindText, getLanguage } from "./i18n.js";

const cache = new Map();

function formatter(Kind, options) {
  const key = `${Kind.name} ${getLanguage()} ${JSON.stringify(options)}`;
  if (!cache.has(key)) cache.set(key, new Kind(getLanguage(), options));
  return cache.get(key);
}

export function count(n) {
  return formatter(Intl.NumberFormat, {}).format(n);
}

export function bytes(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) {
    n /= 1000;
    at += 1;
  }
  return `${formatter(Intl.NumberFormat, { maximumFractionDigits: n < 10 && at ? 1 : 0 }).format(n)} ${units[at]}`;
}

/** Milliseconds. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(2) : s.toFixed(1)} s`;
  const [hours, minutes, seconds] = getLanguage() === "ko" ? ["시간", "분", "초"] : [" h", " min", " s"];
  if (s < 3600) return `${Math.floor(s / 60)}${minutes} ${Math.round(s % 60)}${seconds}`;
  return `${Math.floor(s / 3600)}${hours} ${Math.floor((s % 3600) / 60)}${minutes}`;
}

/** How long it still takes: whole seconds below a minute. A message, so it follows the language. */
export function left(seconds) {
  const whole = Math.ceil(Math.max(0, seconds));
  return new Made(() => (whole < 60 ? formatter(Intl.NumberFormat, { style: "unit", unit: "second", unitDisplay: "short" }).format(whole) : duration(whole * 1000)));
}

/** Time of day of a Unix time in seconds. */
export function clock(unix) {
  return formatter(Intl.DateTimeFormat, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }).format(unix * 1000);
}

export function dateTime(unix) {
  return formatter(Intl.DateTimeFormat, { dateStyle: "medium", timeStyle: "medium" }).format(unix * 1000);
}

const STEPS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** "3 minutes ago". */
export function ago(unix, now = Date.now() / 1000) {
  const past = now - unix;
  for (const [unit, seconds] of STEPS) {
    if (Math.abs(past) >= seconds || unit === "second") {
      return formatter(Intl.RelativeTimeFormat, { numeric: "auto" }).format(-Math.round(past / seconds), unit);
    }
  }
  return "";
}

/** A <time> element that says how long ago, with the exact time in its title; both follow the language and the clock. */
export function when(unix) {
  const el = document.createElement("time");
  el.dateTime = new Date(unix * 1000).toISOString();
  bindText(el, "title", new Made(() => dateTime(unix)));
  el.append(bindText(document.createTextNode(""), "", new Made(() => ago(unix))));
  return el;
}
