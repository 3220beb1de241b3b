// A reporter of jest (27 and later) that tells what happens while it happens. Nothing but Node's own modules.
'use strict';
const { send, text } = require('./event_pipe.cjs');

function testId(path, result) {
  return { path, name: [...(result.ancestorTitles ?? []), result.title].join(' > ') };
}

module.exports = class DariReporter {
  constructor(globalConfig) {
    this._streamed = new Set();
    send({ event: 'session', root: globalConfig.rootDir });
  }

  onTestFileStart(test) {
    send({ event: 'file', path: test.path });
  }

  onTestCaseStart(test, info) {
    send({ event: 'start', ...testId(test.path, info) });
  }

  onTestCaseResult(test, result) {
    this._streamed.add(test.path);
    this._end(test.path, result);
  }

  onTestFileResult(test, result) {
    // A file that could not be loaded has no tests; jest before 29 has no events of single tests.
    if (result.testExecError || (result.failureMessage && result.testResults.length === 0)) {
      send({ event: 'error', path: test.path, name: '', messages: [text(result.failureMessage)] });
    }
    const output = (result.console ?? []).slice(-20).map((line) => text(line.message)).join('\n');
    if (output) send({ event: 'output', path: test.path, text: output.slice(-4000) });
    for (const one of result.testResults) {
      if (!this._streamed.has(test.path) || one.status === 'pending' || one.status === 'todo') {
        this._end(test.path, one);
      }
    }
    send({ event: 'fileEnd', path: test.path });
  }

  onRunComplete(_, results) {
    send({ event: 'finish', reason: results.runExecError ? text(results.runExecError.message) : '' });
  }

  _end(path, result) {
    const outcome = { passed: 'passed', failed: 'failed' }[result.status] ?? 'skipped';
    send({
      event: 'end',
      ...testId(path, result),
      outcome,
      ms: result.duration ?? 0,
      line: result.location?.line ?? 0,
      messages: (result.failureMessages ?? []).slice(0, 5).map(text),
    });
  }
};
