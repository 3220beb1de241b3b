// The `ws` client over a CONNECT of its own: messages that came back, as JSON on stdout.
import http from "node:http";
import tls from "node:tls";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { packages, proxy, ca, url } = JSON.parse(process.argv[2]);
const WebSocket = createRequire(`${packages}/`)("ws");
const target = new URL(url);

const connect = http.request({ host: "127.0.0.1", port: new URL(proxy).port, method: "CONNECT", path: target.host });
connect.end();
const [response, raw] = await once(connect, "connect");
const isSecure = target.protocol === "wss:";
const wire = isSecure ? tls.connect({ socket: raw, servername: target.hostname, ca: readFileSync(ca) }) : raw;
if (isSecure) await once(wire, "secureConnect");

const socket = new WebSocket(url, { createConnection: () => wire, perMessageDeflate: true });
const saw = { status: response.statusCode, got: [] };
await once(socket, "open");
saw.extensions = socket.extensions;
for (const text of ["one", "x".repeat(100_000), "three"]) {
  socket.send(text);
  const [data] = await once(socket, "message");
  saw.got.push(data.toString() === text ? text.length : "differs");
}
socket.ping("are you there");
saw.pong = (await once(socket, "pong"))[0].toString();
socket.close(1000, "done");
saw.closed = (await once(socket, "close"))[0];
console.log(JSON.stringify(saw));
