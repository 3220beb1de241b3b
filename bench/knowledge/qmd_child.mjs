// qmd as a library, in the protocol of child.py: a file for each passage, its full-text search alone.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const TOP = 10;
const [home, folder, passages] = process.argv.slice(2);
const { createStore } = await import(join(home, "dist/index.js"));

const say = (words) => process.stdout.write(JSON.stringify(words) + "\n");
const lines = (name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n");
const quantile = (sorted, share) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)];

const notes = join(folder, "qmd", "notes");
mkdirSync(notes, { recursive: true });
lines("terms.txt").slice(0, Number(passages)).forEach((terms, index) => {
  const below = join(notes, String(index % 100));
  if (index < 100) mkdirSync(below);
  writeFileSync(join(below, `${index + 1}.md`), terms + "\n");
});
const queries = lines("queries.jsonl").map((line) => JSON.parse(line).terms);

const began = performance.now();
const collections = { notes: { path: notes, pattern: "**/*.md" } };
const store = await createStore({ dbPath: join(folder, "qmd", "index.sqlite"), config: { collections } });
await store.update();
say({ s: (performance.now() - began) / 1000 });

for await (const _ of createInterface({ input: process.stdin })) {
  const times = [];
  const cpuTimes = [];
  const found = [];
  for (const query of queries) {
    const started = performance.now();
    const cpuStarted = process.cpuUsage();
    const hits = await store.searchLex(query, { limit: TOP });
    times.push(performance.now() - started);
    const used = process.cpuUsage(cpuStarted);
    cpuTimes.push((used.user + used.system) / 1000);
    found.push(hits.map((hit) => Number(hit.title)));
  }
  for (const list of [times, cpuTimes]) list.sort((one, other) => one - other);
  const cpu = quantile(cpuTimes, 0.5);
  say({ p50_ms: quantile(times, 0.5), p99_ms: quantile(times, 0.99), cpu_p50_ms: cpu, found });
}
await store.close();
