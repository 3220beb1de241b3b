"""JavaScript that makes a Node use the proxy of its environment when it does not by itself.

Node reads `NODE_USE_ENV_PROXY` for `fetch` since 24.0 and for `http` and `https` since 22.21 and 24.5. For others every
connection of the global agents and of `fetch` becomes a CONNECT tunnel through the proxy, plain HTTP too.
"""

PRELOAD = r"""'use strict';
(() => {
  const url = process.env.HTTPS_PROXY || process.env.https_proxy || process.env.HTTP_PROXY || process.env.http_proxy;
  if (!url) return;
  const [major, minor] = process.versions.node.split('.').map(Number);
  const native = process.env.NODE_USE_ENV_PROXY === '1';
  const nativeHttp = native && (major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21));
  const nativeFetch = native && major >= 24;
  if (nativeHttp && nativeFetch) return;
  let proxy;
  try { proxy = new URL(url); } catch { return; }
  if (proxy.protocol !== 'http:') return;
  const net = require('net'), tls = require('tls'), http = require('http'), https = require('https');
  const proxyHost = proxy.hostname.replace(/^\[|\]$/g, ''), proxyPort = Number(proxy.port) || 80;

  const tunnel = (host, port, done) => {
    const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
    const socket = net.connect(proxyPort, proxyHost);
    let head = Buffer.alloc(0);
    const fail = (error) => { socket.destroy(); done(error); };
    socket.once('error', fail);
    socket.once('connect', () => socket.write(`CONNECT ${name}:${port} HTTP/1.1\r\nHost: ${name}:${port}\r\n\r\n`));
    const read = () => {
      let chunk;
      while ((chunk = socket.read()) !== null) {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) { if (head.length > 65536) return fail(new Error('the proxy sent no HTTP')); continue; }
        socket.removeListener('readable', read);
        socket.removeListener('error', fail);
        socket.removeListener('end', ended);
        const status = Number(head.toString('latin1', 0, 16).split(' ')[1]);
        if (status !== 200) return fail(new Error(`the proxy answered ${status} for ${name}:${port}`));
        const rest = head.subarray(end + 4);
        if (rest.length) socket.unshift(rest);
        return done(null, socket);
      }
    };
    const ended = () => fail(new Error('the proxy closed the connection'));
    socket.on('readable', read);
    socket.once('end', ended);
  };

  const connect = (options, done, secure) => {
    const host = options.host || options.hostname || 'localhost';
    tunnel(host, options.port || (secure ? 443 : 80), (error, socket) => {
      if (error) return done(error);
      if (!secure) return done(null, socket);
      const servername = options.servername || (net.isIP(host) ? '' : host);
      const layer = tls.connect({ ...options, path: undefined, socket, host, servername });
      layer.once('error', done);
      layer.once('secureConnect', () => { layer.removeListener('error', done); done(null, layer); });
    });
  };

  if (!nativeHttp) {
    class PlainAgent extends http.Agent {
      createConnection(options, done) { connect(options, done, false); }
    }
    class SecureAgent extends https.Agent {
      createConnection(options, done) { connect(options, done, true); }
    }
    http.globalAgent = new PlainAgent({ keepAlive: true });
    https.globalAgent = new SecureAgent({ keepAlive: true });
  }
  if (!nativeFetch && typeof globalThis.fetch === 'function') {
    const symbol = Symbol.for('undici.globalDispatcher.1');
    try { globalThis.fetch('data:,').catch(() => {}); } catch { /* it only had to be loaded */ }
    const dispatcher = globalThis[symbol];
    if (dispatcher) {
      const Agent = dispatcher.constructor;
      globalThis[symbol] = new Agent({
        connect: (options, done) => connect(
          { ...options, host: options.hostname }, done, options.protocol === 'https:'),
      });
    }
  }
})();
"""
