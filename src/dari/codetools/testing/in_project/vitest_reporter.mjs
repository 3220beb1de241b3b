// A reporter of vitest (1 and later) that tells what happens while it happens. Nothing but Node's own modules.
import { createRequire } from 'node:module';

const { send, text } = createRequire(import.meta.url)('./event_pipe.cjs');

function failures(errors) {
  return (errors ?? []).slice(0, 5).map((error) => {
    const frames = (error.stacks ?? []).slice(0, 40).map((at) => ({ path: at.file, line: at.line, in: at.method }));
    const message = error.name && !text(error.message).startsWith(error.name) ? `${error.name}: ${error.message}` : error.message;
    return { message: text(message), diff: text(error.diff), stack: text(error.stack), frames };
  });
}

export default class DariReporter {
  constructor() {
    this._hasEvents = false;
    this._output = new Map();
  }

  onInit(vitest) {
    send({ event: 'session', root: vitest.config?.root, version: vitest.version });
  }

  onTestModuleCollected(module) {
    this._hasEvents = true;
    send({ event: 'collected', count: [...module.children.allTests()].length });
  }

  onTestModuleStart(module) {
    send({ event: 'file', path: module.moduleId });
  }

  onTestCaseReady(test) {
    send({ event: 'start', path: test.module.moduleId, name: test.fullName });
  }

  onTestCaseResult(test) {
    const result = test.result();
    this._send(test.module.moduleId, test.fullName, test.id, result.state, test.diagnostic()?.duration, result.errors, test.location?.line);
  }

  onTestModuleEnd(module) {
    const errors = failures(module.errors());
    if (errors.length) send({ event: 'error', path: module.moduleId, name: '', failures: errors });
    for (const suite of module.children.allSuites()) {
      const inSuite = failures(suite.errors?.());
      if (inSuite.length) send({ event: 'error', path: module.moduleId, name: suite.fullName, failures: inSuite });
    }
    send({ event: 'fileEnd', path: module.moduleId });
  }

  onUserConsoleLog(log) {
    const before = this._output.get(log.taskId) ?? '';
    this._output.set(log.taskId, (before + log.content).slice(-4000));
  }

  onTestRunEnd(modules, unhandled, reason) {
    this._finish(unhandled, reason);
  }

  onFinished(files, unhandled) {
    if (this._hasEvents) return;
    // vitest before 3 has no events of single tests.
    for (const file of files ?? []) {
      const errors = failures(file.result?.errors);
      if (errors.length) send({ event: 'error', path: file.filepath, name: '', failures: errors });
      this._walk(file.filepath, file.tasks ?? [], []);
    }
    this._finish(unhandled, '');
  }

  _finish(unhandled, reason) {
    for (const failure of failures(unhandled)) send({ event: 'error', path: '', name: 'unhandled error', failures: [failure] });
    send({ event: 'finish', reason: reason === 'interrupted' ? reason : '' });
  }

  _walk(path, tasks, names) {
    for (const task of tasks) {
      const inside = [...names, task.name];
      if (task.tasks) {
        this._walk(path, task.tasks, inside);
      } else {
        const state = { pass: 'passed', fail: 'failed' }[task.result?.state] ?? 'skipped';
        this._send(path, inside.join(' > '), task.id, state, task.result?.duration, task.result?.errors, task.location?.line);
      }
    }
  }

  _send(path, name, id, state, ms, errors, line) {
    const output = this._output.get(id) ?? '';
    this._output.delete(id);
    send({ event: 'end', path, name, outcome: state, ms: ms ?? 0, line: line ?? 0, failures: failures(errors), output });
  }
}
