// A file for the person: the browser's own download.

import { h } from "../lib/dom.js";

export function download(name, pieces, type = "application/octet-stream") {
  const url = URL.createObjectURL(new Blob(Array.isArray(pieces) ? pieces : [pieces], { type }));
  const link = h("a", { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}
