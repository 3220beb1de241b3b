// Where a server's questions are shown: beside the call that runs. What answers them is loaded with the first one.

/** {el, name, signal} of the calls that run now; the last one is asked. */
export const hosts = [];

/** Questions are shown in `el` while the call named `name` runs; they end with the signal. */
export function hostRequests(el, name, signal) {
  const host = { el, name, signal };
  hosts.push(host);
  signal.addEventListener("abort", () => hosts.splice(hosts.indexOf(host), 1), { once: true });
}
