// The URL is the state: /page/rest?query. Links with data-link (or plain <a href="/…">) stay in the page.

export const route = { page: "home", path: [], query: new URLSearchParams() };
const listeners = new Set();

/** A link that somebody wrote by hand may have a % that stands for nothing. */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read() {
  const [page = "", ...path] = location.pathname.split("/").filter(Boolean).map(decode);
  route.page = page || "home";
  route.path = path;
  route.query = new URLSearchParams(location.search);
}

function tell() {
  read();
  for (const run of listeners) run(route);
}

export function onRoute(run) {
  listeners.add(run);
}

export function go(url, { replace = false } = {}) {
  if (url === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  tell();
}

/** Change some of the query; null takes a name away. Pages hear of it through update(). */
export function setQuery(changes, { replace = true } = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), { replace });
}

export function startRouting() {
  read();
  addEventListener("popstate", tell);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='/']");
    if (!link || link.target || link.hasAttribute("download") || event.defaultPrevented) return;
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
}
