import assert from "node:assert/strict";
import { test } from "node:test";

import { byDuration, byHost } from "../../../src/dari/console/static/js/lib/flow-charts.js";
import { DURATION, HOST, REPLAY_OF, STARTED } from "../../../src/dari/console/static/js/lib/flow-rows.js";

const row = (host, started, duration = null) => {
  const made = Array(REPLAY_OF + 1).fill(null);
  made[HOST] = host;
  made[STARTED] = started;
  made[DURATION] = duration;
  return made;
};
const total = (series) => series.flatMap((one) => one.values).reduce((a, b) => a + b, 0);

test("every request is counted once, the busiest host first and the rest together", () => {
  const rows = [];
  for (let host = 0; host < 8; host++) for (let n = 0; n <= host; n++) rows.push(row(`h${host}`, 1_700_000_000_000 + n * 1000));
  const { series } = byHost(rows);
  assert.deepEqual(series.map((one) => one.name), ["h7", "h6", "h5", "h4", "h3", ""]);
  assert.equal(total(series), rows.length);
});

test("there are never more steps than fit, from a second to a year", () => {
  for (const span of [0, 1000, 60_000, 3_600_000, 86_400_000, 31_536_000_000]) {
    const { series, step } = byHost([row("a", 1_700_000_000_123), row("a", 1_700_000_000_123 + span)]);
    assert.ok(series[0].values.length <= 41, `${span} ms in ${series[0].values.length} steps of ${step} s`);
    assert.equal(total(series), 2);
  }
});

test("without requests there is nothing to draw", () => {
  assert.deepEqual(byHost([]).series, []);
  assert.equal(byDuration([]).reduce((all, one) => all + one.value, 0), 0);
});

test("durations fall into their bucket, and running requests into none", () => {
  const buckets = byDuration([row("a", 0, 9.9), row("a", 0, 10), row("a", 0, 999), row("a", 0, 99_999), row("a", 0)]);
  const named = Object.fromEntries(buckets.map((one) => [one.name, one.value]));
  assert.equal(named["<10ms"], 1);
  assert.equal(named["<50ms"], 1);
  assert.equal(named["<1s"], 1);
  assert.equal(named["≥5s"], 1);
  assert.equal(buckets.reduce((all, one) => all + one.value, 0), 4);
});
