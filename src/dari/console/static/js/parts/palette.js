// Ctrl-K: every page and command by typing. `?`: the keys that work here.

import { h, icon, keyed } from "../lib/dom.js";
import { t, text } from "../lib/i18n.js";
import { keys, palette } from "../lib/keys.js";
import { dialog } from "./dialog.js";

let open = false;

export function openPalette() {
  if (open) return;
  open = true;
  let chosen = 0;
  let found = [];
  const list = h("ul", { class: "menu palette-list", role: "listbox", id: "palette-list", "aria-label": t("palette.title") });
  const input = h("input", {
    class: "input", type: "text", role: "combobox", autofocus: true, placeholder: t("palette.placeholder"), "aria-label": t("palette.placeholder"),
    "aria-expanded": "true", "aria-controls": "palette-list", autocomplete: "off", spellcheck: "false",
  });
  let close = () => {};
  const run = (command) => {
    close();
    command.run();
  };
  function draw() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = palette.all().filter((one) => {
      const title = `${text(one.title)} ${text(one.group || "")} ${one.words || ""}`.toLowerCase();
      return words.every((word) => title.includes(word));
    }).slice(0, 60);
    chosen = Math.min(chosen, Math.max(0, found.length - 1));
    keyed(list, found, (one) => one, (one) =>
      h("li", { role: "option", on: { click: () => run(one), mousemove: () => select(found.indexOf(one)) } },
        h("span", { class: "grow" }, one.title), one.group ? h("span", { class: "muted" }, one.group) : null,
        one.key ? h("span", {}, keyCaps(one.key)) : null),
      (el, one) => (el.id = `palette-${found.indexOf(one)}`));
    select(chosen);
  }
  function select(at) {
    chosen = at;
    [...list.children].forEach((el, n) => el.setAttribute("aria-selected", n === at));
    if (list.children[at]) input.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at]?.scrollIntoView({ block: "nearest" });
  }
  input.addEventListener("input", () => ((chosen = 0), draw()));
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      select((chosen + step + found.length) % found.length);
    } else if (event.key === "Enter" && found[chosen]) {
      event.preventDefault();
      run(found[chosen]);
    }
  });
  dialog({ title: t("palette.title"), body: (shut) => ((close = shut), h("div", { class: "stack" }, input, list)), onClose: () => (open = false) });
  draw();
}

/** "g h" is two keys after each other, "Ctrl+k" one: as they are written on a keyboard. */
const keyCaps = (keys) => keys.split(" ").map((part) => h("kbd", { class: "kbd" }, part.replace(/\+.$/, (last) => last.toUpperCase())));

export function showKeys() {
  const rows = keys.all().filter((one) => one.label && (!one.when || one.when())).map((one) =>
    h("tr", {}, h("td", {}, keyCaps(one.key)), h("td", {}, one.label)));
  dialog({ title: t("keys.title"), body: h("table", { class: "table" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("keys.key")), h("th", { scope: "col" }, t("keys.does")))), h("tbody", {}, rows)) });
}

export function searchButton() {
  return h("button", { class: "btn ghost search-button", type: "button", on: { click: openPalette } }, icon("search"), h("span", { class: "grow" }, t("palette.open")), h("kbd", { class: "kbd" }, "Ctrl K"));
}
