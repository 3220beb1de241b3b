import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";

export function mount(root) {
  root.append(h("header", { class: "page-head" }, h("h1", {}, t("nav.home"))));
  return {};
}
