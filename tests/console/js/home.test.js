// Which agent the mark on Home waits for.

import assert from "node:assert/strict";
import test from "node:test";

import { CLIENTS, firstCall } from "../../../src/dari/console/static/js/pages/home-connect.js";

const agent = (name, client, calls, first = 1) => ({ name, client, calls, first_call_unix: first });

test("with a token of its own the token decides, whatever the client calls itself", () => {
  const clients = [agent("Cursor", "", 3), agent("anything", "cursor", 1)];
  assert.equal(firstCall(clients, { client: "cursor", token: "cursor" }).name, "anything");
  assert.equal(firstCall([agent("Cursor", "", 3)], { client: "cursor", token: "cursor" }), null);
});

test("a session without a call is not a call", () => {
  assert.equal(firstCall([agent("x", "cursor", 0)], { client: "cursor", token: "cursor" }), null);
});

test("with the shared token the name decides, and clients with tokens of their own do not count", () => {
  assert.equal(firstCall([agent("cursor-vscode", "", 1)], { client: "cursor", token: "shared" }).name, "cursor-vscode");
  assert.equal(firstCall([agent("Cursor", "other", 1)], { client: "cursor", token: "shared" }), null);
});

test("the earliest of several counts", () => {
  const clients = [agent("codex-mcp-client", "", 2, 20), agent("codex", "", 2, 10)];
  assert.equal(firstCall(clients, { client: "codex", token: "shared" }).first_call_unix, 10);
});

test("real clients are known by the names they give themselves", () => {
  const names = { "claude-code": "claude-code", "claude-desktop": "claude-ai", cursor: "cursor-vscode", vscode: "Visual Studio Code", codex: "codex-mcp-client", gemini: "gemini-cli-mcp-client" };
  for (const [id, name] of Object.entries(names)) assert.ok(CLIENTS[id].called.test(name), name);
});
