/** One call of a tool, written for other programs. Text of others never leaves its quotes. */

/** JSON whose invisible and direction-changing characters are escapes: what is pasted is what was read. */
export function safeJson(value, indent) {
  const text = JSON.stringify(value, null, indent) ?? "null";
  return text.replace(
    /[\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|\udb40[\udc00-\udfff]/g,
    (found) => [...Array(found.length).keys()].map((i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""),
  );
}

export const shellQuote = (text) => (/^[\w@%+=:,./-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", "'\\''")}'`);

function python(value, indent = 8) {
  const pad = " ".repeat(indent);
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return safeJson(value);
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((one) => python(one, indent + 4))
    : Object.entries(value).map(([name, one]) => `${safeJson(name)}: ${python(one, indent + 4)}`);
  const [open, close] = isList ? "[]" : "{}";
  const line = `${open}${parts.join(", ")}${close}`;
  return line.length < 80 && !line.includes("\n") ? line : `${open}\n${parts.map((part) => `${pad}    ${part},\n`).join("")}${pad}${close}`;
}

/** call = {name, args, endpoint, server, own}: the name here, and the server's own one. */
export const asMcp = ({ name, args }) => safeJson({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }, 2);

export function asCurl({ name, args, endpoint }) {
  const version = "2026-07-28";
  const meta = { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} };
  const body = safeJson({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta: meta } });
  const headers = [
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    `MCP-Protocol-Version: ${version}`,
    "Mcp-Method: tools/call",
    `Mcp-Name: ${headerText(name)}`,
  ];
  return [
    `curl -s ${shellQuote(endpoint)} \\`,
    '  -H "Authorization: Bearer $DARI_TOKEN" \\',
    ...headers.map((header) => `  -H ${shellQuote(header)} \\`),
    `  -d ${shellQuote(body)}`,
  ].join("\n");
}

/** A header's value: plain ASCII as it is, anything else in the form that MCP gives it. */
const headerText = (name) => (/^[\x21-\x7e]+$/.test(name) ? name : `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(name)))}?=`);

export const asPython = ({ name, args, endpoint }) =>
  [
    "import asyncio",
    "import os",
    "",
    "from dari.transport.connect import connect",
    "",
    "",
    "async def main() -> None:",
    `    async with connect(${safeJson(endpoint)}, bearer=os.environ["DARI_TOKEN"]) as client:`,
    `        arguments = ${python(args)}`,
    `        result = await client.call_tool(${safeJson(name)}, arguments)`,
    "        print(result.text)",
    "",
    "",
    "asyncio.run(main())",
    "",
  ].join("\n");

/** "" for a tool that no server of the command line has. */
export function asCli({ name, args, server, own }) {
  const [of, tool] = server ? [server, own] : name.startsWith("crewx_tools_") ? ["crewx-tools", name] : ["", ""];
  if (!of) return "";
  const params = Object.keys(args ?? {}).length ? ` --params ${shellQuote(safeJson(args))}` : "";
  return `dari remote call-tool ${shellQuote(tool)} --server ${shellQuote(of)}${params}`;
}
