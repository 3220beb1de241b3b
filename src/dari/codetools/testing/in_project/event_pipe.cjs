// Writes events as JSON lines into the named pipe of DARI_TEST_EVENTS. Node's own modules only.
'use strict';
const fs = require('node:fs');

const MAX_TEXT_CHARS = 20000;
const path = process.env.DARI_TEST_EVENTS;
// Nothing of it is left for what tests start.
delete process.env.DARI_TEST_EVENTS;
const file = path ? fs.openSync(path, 'w') : -1;

function send(event) {
  if (file < 0) return;
  let data = Buffer.from(JSON.stringify(event) + '\n');
  while (data.length > 0) {
    try {
      data = data.subarray(fs.writeSync(file, data));
    } catch (error) {
      if (error.code !== 'EAGAIN') return;
    }
  }
}

function text(value) {
  return String(value ?? '').slice(0, MAX_TEXT_CHARS);
}

module.exports = { send, text };
