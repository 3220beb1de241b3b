// List a stdio server's tools and make one failing call of each, with the TypeScript SDK v1 or v2.
// usage: node typescript.mjs v1|v2 COMMAND [ARGS...]; prints one JSON object: tool -> what the client returned.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.DARI_NPM_DIR, "package.json"));
const [version, command, ...args] = process.argv.slice(2);
const { Client, StdioClientTransport } =
  version === "v1"
    ? {
        ...require("@modelcontextprotocol/sdk/client/index.js"),
        ...require("@modelcontextprotocol/sdk/client/stdio.js"),
      }
    : { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };

const client = new Client({ name: `typescript-${version}`, version: "1" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));

const names = [];
let cursor;
do {
  const page = await client.listTools(cursor ? { cursor } : {});
  names.push(...page.tools.map((tool) => tool.name));
  cursor = page.nextCursor;
} while (cursor);

const answers = {};
for (const name of names) {
  try {
    answers[name] = await client.callTool({ name, arguments: { no_such_argument: 1 } });
  } catch (error) {
    answers[name] = { thrown: String(error) };
  }
}
await client.close();
process.stdout.write(JSON.stringify(answers));
