// Node's own fetch, told of the proxy and its CA by the environment alone.
console.log(await (await fetch(process.argv[2])).text());
