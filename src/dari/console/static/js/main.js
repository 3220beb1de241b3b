// The frame: navigation, connection, theme, palette; loads a page when it is first opened.

import { h, icon, replace } from "./lib/dom.js";
import { LANGUAGES, addTexts, getLanguage, onLanguage, rewrite, setLanguage, t, text } from "./lib/i18n.js";
import { keys, palette, startKeys } from "./lib/keys.js";
import { live } from "./lib/live.js";
import { go, onRoute, route, startRouting } from "./lib/route.js";
import { loadStyle } from "./lib/style.js";
import { applyTheme, switchTheme } from "./lib/theme.js";
import { openPalette, searchButton, showKeys } from "./parts/palette.js";
import { toast, toastError } from "./parts/toast.js";
import { emptyState } from "./parts/widgets.js";
import texts from "./texts/shell.js";

addTexts(texts);

/** In the order of the navigation; `needs`: a tool without which the page is absent. */
const PAGES = [
  { name: "home", key: "h" },
  { name: "servers", key: "s", needs: "dari_servers_list" },
  { name: "tools", key: "o" },
  { name: "traffic", key: "t", needs: "crab_traffic_tail" },
  { name: "terminals", key: "e", needs: "crux_list_panes" },
  { name: "knowledge", key: "k", needs: "kebab_search" },
  { name: "approvals", key: "a", needs: "dari_approvals_list" },
  { name: "audit", key: "u", needs: "dari_audit_search" },
  { name: "settings", key: "," },
];

const main = h("main", { id: "main", tabindex: "-1" });
const banner = h("div", { class: "banner", role: "alert", hidden: true });
const badges = new Map();
let shown = { name: "", abort: new AbortController(), page: null };
let present = new Set(PAGES.map((one) => one.name));

function link(page) {
  const badge = h("span", { class: "badge warn", hidden: true });
  badges.set(page.name, badge);
  const href = page.name === "home" ? "/" : `/${page.name}`;
  return h("a", { href, data: { page: page.name }, class: "nav-link" }, icon(page.name), h("span", { class: "nav-text" }, t(`nav.${page.name}`)), badge);
}

function switchLanguage() {
  const codes = Object.keys(LANGUAGES);
  setLanguage(codes[(codes.indexOf(getLanguage()) + 1) % codes.length]).catch(toastError);
}

async function logOut() {
  await fetch("/logout", { method: "POST", redirect: "manual" });
  location.href = "/";
}

function frame() {
  const links = PAGES.map(link);
  const nav = h("nav", { class: "nav", "aria-label": t("nav.label"), data: { state: "closed" } },
    h("a", { href: "/", class: "brand" }, h("img", { src: new URL("../icon.svg", import.meta.url), alt: "", width: "22", height: "22" }), "Dari"),
    searchButton(), h("div", { class: "nav-links" }, links),
    h("div", { class: "nav-foot row" },
      h("span", { class: "dot", id: "live-dot", data: { state: "connecting" }, role: "img" }),
      h("span", { class: "grow muted small", id: "version" }),
      h("button", { class: "btn ghost icon", type: "button", "aria-label": t("theme.switch"), title: t("theme.switch"), on: { click: switchTheme } }, icon("moon")),
      h("button", { class: "btn ghost icon", type: "button", "aria-label": t("language.switch"), title: t("language.switch"), on: { click: switchLanguage } }, icon("globe"))));
  const menu = h("button", { class: "btn ghost icon nav-menu", type: "button", "aria-label": t("nav.menu"), "aria-expanded": "false" }, icon("menu"));
  const setMenu = (isOpen) => {
    nav.dataset.state = isOpen ? "open" : "closed";
    menu.setAttribute("aria-expanded", isOpen);
  };
  menu.addEventListener("click", () => setMenu(nav.dataset.state !== "open"));
  onRoute(() => setMenu(false));
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#main", on: { click: (event) => (event.preventDefault(), main.focus()) } }, t("nav.skip")),
    h("header", { class: "topbar" }, menu, h("span", { class: "brand" }, "Dari")), nav, h("div", { class: "content" }, banner, main));
}

async function show() {
  const name = PAGES.some((one) => one.name === route.page) ? route.page : "";
  for (const el of document.querySelectorAll(".nav-link")) {
    if (el.dataset.page === name) el.setAttribute("aria-current", "page");
    else el.removeAttribute("aria-current");
  }
  if (name && name === shown.name) return shown.page?.update?.(route);
  shown.abort.abort();
  const mine = (shown = { name, abort: new AbortController(), page: null });
  main.className = `page page-${name}`;
  main.dataset.page = name;
  main.dataset.state = "loading";
  showTitle();
  if (!name) {
    main.dataset.state = "ready";
    const home = h("a", { class: "btn primary", href: "/" }, t("nav.home"));
    return replace(main, emptyState({ icon: "warn", title: t("page.missing"), body: t("page.missing.body"), action: home }));
  }
  try {
    const module = await import(`./pages/${name}.js`);
    await Promise.all((module.css || []).map(loadStyle));
    if (mine !== shown) return;
    const root = h("div", { class: "page-root" });
    replace(main, root);
    mine.page = await module.mount(root, { route, signal: mine.abort.signal, showWaiting });
    main.dataset.state = "ready";
  } catch (error) {
    if (mine !== shown) return;
    console.error(error);
    main.dataset.state = "failed";
    const again = h("button", { class: "btn", on: { click: () => location.reload() } }, t("retry"));
    replace(main, emptyState({ icon: "warn", title: t("page.failed"), body: String(error?.message || error), action: again }));
  }
}

function showTitle() {
  document.title = shown.name ? `${text(t(`nav.${shown.name}`))} · Dari` : "Dari";
}

export function showWaiting(n) {
  const badge = badges.get("approvals");
  badge.hidden = !n;
  replace(badge, String(n));
  badge.setAttribute("aria-label", text(t("nav.waiting", { n })));
}

function showState(state) {
  const dot = document.getElementById("live-dot");
  const isOut = state === "logged-out";
  dot.dataset.state = { open: "ok", lost: "bad", "logged-out": "bad" }[state] || "busy";
  const label = t(isOut ? "live.loggedOut" : `live.${state}`);
  dot.setAttribute("aria-label", text(label));
  dot.title = text(label);
  document.documentElement.dataset.live = state;
  const wasLost = !banner.hidden;
  banner.hidden = state === "open" || state === "connecting";
  if (state === "lost" || isOut) {
    const again = isOut ? null : h("button", { class: "btn", on: { click: () => live.retry() } }, t("live.retry"));
    replace(banner, icon("warn"), h("span", { class: "grow" }, label), again);
  } else if (state === "open" && wasLost) {
    toast(t("live.back"), { kind: "ok" });
  }
}

async function showPresent() {
  const names = new Set((await live.tools()).map((one) => one.name));
  present = new Set(PAGES.filter((one) => !one.needs || names.has(one.needs)).map((one) => one.name));
  for (const el of document.querySelectorAll(".nav-link")) el.hidden = !present.has(el.dataset.page);
}

function addCommands() {
  keys.add({ key: "Ctrl+k", label: t("keys.palette"), run: openPalette, always: true });
  keys.add({ key: "?", label: t("keys.help"), run: showKeys });
  for (const page of PAGES) {
    const href = page.name === "home" ? "/" : `/${page.name}`;
    const title = t("go.to", { page: t(`nav.${page.name}`) });
    keys.add({ key: `g ${page.key}`, label: title, run: () => go(href), when: () => present.has(page.name) });
    const when = () => present.has(page.name);
    palette.add({ title: t(`nav.${page.name}`), group: t("group.pages"), key: `g ${page.key}`, words: page.name, when, run: () => go(href) });
  }
  palette.add({ title: t("theme.switch"), group: t("group.appearance"), words: "dark light theme 테마", run: switchTheme });
  palette.add({ title: t("language.switch"), group: t("group.appearance"), words: "english korean 한국어", run: switchLanguage });
  palette.add({ title: t("keys.help"), group: t("group.appearance"), key: "?", run: showKeys });
  const runTool = async () => (await import("./parts/tool-palette.js")).openToolPalette();
  // Chrome keeps Ctrl-Shift-M for its profiles, Firefox for its phone view: the second one always arrives.
  for (const key of ["Ctrl+Shift+m", "Alt+Shift+m"]) keys.add({ key, label: t("keys.runTool"), run: runTool, always: true });
  palette.add({ title: t("keys.runTool"), group: t("group.pages"), key: "Alt+Shift+m", words: "tool call palette 도구", run: runTool });
  palette.add({ title: t("logout"), group: t("group.session"), run: logOut });
}

applyTheme();
matchMedia("(prefers-color-scheme: light)").addEventListener("change", applyTheme);
startRouting();
startKeys();
frame();
addCommands();
onRoute(show);
onLanguage(showTitle);
live.onState(showState);
live.onState((state) => state === "open" && showPresent().catch(() => {}));
live.onNotice((method) => method === "notifications/tools/list_changed" && showPresent().catch(() => {}));
live.follow("hub", (state) => {
  showWaiting(state.waiting);
  document.getElementById("version").textContent = state.version;
});
// What a server asks in the middle of a call; the parts that answer are loaded when the first one does.
live.onRequest("elicitation/create", async (params) => (await import("./parts/server-requests.js")).answerElicitation(params));
live.onRequest("sampling/createMessage", async (params) => (await import("./parts/server-requests.js")).answerSampling(params));
setInterval(() => document.querySelectorAll("time").forEach(rewrite), 20_000);
live.connect();
if (globalThis.Notification?.permission === "granted") import("./parts/approval-alerts.js").then((alerts) => alerts.start());
show();
