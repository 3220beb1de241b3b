// mockttp as its documentation shows a pass-through proxy, without recording: port, mode, certificate, key.
import net from 'node:net';
import { createRequire } from 'node:module';

const [home, port, mode, certPath, keyPath] = process.argv.slice(2);
const mockttp = createRequire(`${home}/package.json`)('mockttp');

// It listens on every interface and has no option for it; a benchmark stays on this machine.
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...given) {
  return typeof given[0] === 'number' ? listen.call(this, given[0], '127.0.0.1', ...given.slice(1)) : listen.apply(this, given);
};

const server = mockttp.getLocal({
  https: { certPath, keyPath, ...(mode === 'tunnel' ? { tlsPassthrough: [{ hostname: '127.0.0.1' }] } : {}) },
  recordTraffic: false,
  suggestChanges: false,
});
await server.forAnyRequest().thenPassThrough({ ignoreHostHttpsErrors: true });
await server.start(Number(port));
process.on('SIGTERM', () => process.exit(0));
