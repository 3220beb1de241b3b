// undici through the proxy: what it saw, as JSON on stdout.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { packages, proxy, ca, base, tunnels } = JSON.parse(process.argv[2]);
const { ProxyAgent, fetch, request } = createRequire(`${packages}/`)("undici");
const dispatcher = new ProxyAgent({ uri: proxy, proxyTunnel: tunnels, requestTls: { ca: readFileSync(ca) } });
const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const saw = {};

saw.hello = await (await fetch(`${base}/hello`, { dispatcher })).text();

const pieces = Array.from({ length: 40 }, (_, n) => new Uint8Array(50_000).fill(n));
const body = new ReadableStream({
  pull(controller) {
    const next = pieces[saw.sent ?? 0];
    saw.sent = (saw.sent ?? 0) + 1;
    next === undefined ? controller.close() : controller.enqueue(next);
  },
});
saw.echo = await (await fetch(`${base}/echo`, { method: "POST", body, duplex: "half", dispatcher })).json();
saw.expected = sha256(Buffer.concat(pieces));

const events = (await fetch(`${base}/events`, { dispatcher })).body.pipeThrough(new TextDecoderStream()).getReader();
saw.events = [(await events.read()).value];
await (await fetch(`${base}/release`, { dispatcher })).text();
for (let part; !(part = await events.read()).done; ) saw.events.push(part.value);

saw.big = sha256(Buffer.from(await (await fetch(`${base}/big?8`, { dispatcher })).arrayBuffer()));

const chunked = await request(`${base}/chunked`, { dispatcher });
saw.chunked = await chunked.body.text();
saw.trailers = chunked.trailers;

const stop = new AbortController();
const endless = (await fetch(`${base}/endless`, { dispatcher, signal: stop.signal })).body.getReader();
await endless.read();
stop.abort();
saw.aborted = await endless.read().then(() => "went on", (error) => error.name);

saw.parallel = await Promise.all(
  Array.from({ length: 30 }, async () => (await fetch(`${base}/hello`, { dispatcher })).text()),
);
await dispatcher.close();
console.log(JSON.stringify(saw));
