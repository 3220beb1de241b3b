// Traffic: the live table of requests, and the views around it (rules, breakpoints, …), each loaded when it is opened.

import { h, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { loadStyle } from "../lib/style.js";
import { emptyState } from "../parts/widgets.js";
import texts from "../texts/traffic.js";
import * as requests from "./traffic-requests.js";

addTexts(texts);
export const css = ["virtual-list.css", "traffic.css"];

const VIEWS = ["rules", "breakpoints", "compose", "diff", "throttle", "har"];

export function mount(root, { route, signal }) {
  const links = ["requests", ...VIEWS].map((name) =>
    h("a", { class: "tab", href: name === "requests" ? "/traffic" : `/traffic/${name}`, data: { view: name } }, t(`traffic.tab.${name}`)));
  const head = h("header", { class: "page-head traffic-head" },
    h("h1", {}, t("traffic.title")),
    h("nav", { class: "tabs", "aria-label": t("traffic.views") }, links));
  const place = h("div", { class: "traffic-view" });
  root.append(head, place);
  let shown = { name: "", abort: new AbortController(), page: null };
  signal.addEventListener("abort", () => shown.abort.abort());

  async function show(where) {
    const name = VIEWS.includes(where.path[0]) ? where.path[0] : "requests";
    if (name === shown.name) return shown.page?.update?.(where);
    shown.abort.abort();
    const mine = (shown = { name, abort: new AbortController(), page: null });
    for (const link of links) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    place.dataset.view = name;
    const view = h("div", { class: "traffic-root" });
    try {
      const module = name === "requests" ? requests : await import(`./traffic-${name}.js`);
      await Promise.all((module.css ?? []).map(loadStyle));
      if (mine !== shown || signal.aborted) return;
      replace(place, view);
      mine.page = await module.mount(view, { route: where, signal: mine.abort.signal });
    } catch (error) {
      if (mine !== shown) return;
      replace(place, emptyState({ icon: "warn", title: t("traffic.soon"), body: String(error?.message ?? error) }));
    }
  }

  const first = show(route);
  return first.then(() => ({ update: show }));
}
