import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { test } from "node:test";

import {
  Conflict, Connection, ConnectionLost, InvalidParams, MethodNotFound, NoAnswer, NotFound, OtherHome, OtherOwner, Refused,
  TooLarge, Unavailable, connect, socketPath,
} from "../src/index.js";
import { Daemon, withDaemon } from "./support.js";

const fact = (cwd, name, more = {}) => ({
  cwd, markdown: `Body of ${name}.`, fields: { name, type: "project", description: `About ${name}` }, ...more,
});

test("calls, and one class of error a kind", () =>
  withDaemon(async (daemon) => {
    const memd = daemon.connection();
    const cwd = daemon.repo;
    const saved = await memd.call("memory.save", fact(cwd, "tides"));
    assert.match(saved.hash, /^sha256:[0-9a-f]{64}$/);
    assert.equal((await memd.call("memory.read", { cwd, name: "tides" })).text, "Body of tides.");
    const kinds = [
      [Refused, "memory.save", { cwd, markdown: "x" }],
      [NotFound, "memory.forget", { cwd, name: "nothing" }],
      [Conflict, "memory.save", fact(cwd, "tides", { expect: null })],
      [InvalidParams, "memory.search", { cwd, query: "x", limit: 0 }],
      [MethodNotFound, "memory.sing", { cwd }],
      [TooLarge, "memory.save", { cwd, markdown: "x".repeat(2 ** 20) }],
      [InvalidParams, "memory.search", { cwd, query: "\ud800" }],
    ];
    for (const [kind, method, params] of kinds) {
      await assert.rejects(memd.call(method, params), (error) => error.constructor === kind && error.name === kind.name);
    }
    await assert.rejects(memd.call("memory.save", { cwd, markdown: "x" }), (error) => {
      assert.match(error.message, /^memory\.save: the description is missing|^memory\.save: .*type/);
      assert.equal(error.code, -32001);
      assert.equal(error.data.kind, "refused");
      return true;
    });
    assert.equal((await memd.call("memory.search", { cwd, query: 'a \\ud800 "\u2028😀' })).total, 0);
    memd.close();
  }));

test("a hundred calls at once are each answered with their own", () =>
  withDaemon(async (daemon) => {
    const memd = daemon.connection();
    const names = Array.from({ length: 100 }, (_, number) => `note-${number}`);
    const replies = await Promise.all(names.map((name) => memd.call("memory.save", fact(daemon.repo, name))));
    assert.deepEqual(replies.map((reply) => reply.name), names);
    const texts = await Promise.all(names.map((name) => memd.call("memory.read", { cwd: daemon.repo, name })));
    assert.deepEqual(texts.map((note) => note.text), names.map((name) => `Body of ${name}.`));
    memd.close();
  }));

test("a long answer, and notes of every script, come whole", () =>
  withDaemon(async (daemon) => {
    const memd = daemon.connection();
    const body = "面关配 émoji 😀 ".repeat(300);
    for (let number = 0; number < 60; number += 1) {
      await memd.call("memory.save", fact(daemon.repo, `n${number}`, { markdown: `${number} ${body}` }));
    }
    const { notes } = await memd.call("memory.list", { cwd: daemon.repo, bodies: true });
    assert.equal(notes.length, 60);
    assert.ok(notes.every((note) => note.body === `${note.name.slice(1)} ${body}`));
    memd.close();
  }));

test("a daemon that was started anew is found again, also by a write", () =>
  withDaemon(async (daemon) => {
    const memd = daemon.connection();
    await memd.call("memory.save", fact(daemon.repo, "one"));
    await daemon.kill();
    await daemon.start();
    await memd.call("memory.save", fact(daemon.repo, "two"));
    await daemon.kill();
    await daemon.start();
    assert.equal((await memd.call("memory.list", { cwd: daemon.repo })).total, 2);
    memd.close();
  }));

test("a read is sent again once when the connection breaks under it, a write is not", async () => {
  const daemon = new Daemon();
  const path = socketPath(daemon.env);
  mkdirSync(dirname(path), { recursive: true });
  const heard = [];
  const server = createServer((socket) => {
    socket.on("data", (line) => {
      const { method, id } = JSON.parse(line);
      heard.push(method);
      if (heard.length % 2 === 1) socket.destroy();
      else socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: { hits: [] } })}\n`);
    });
    socket.on("error", () => {});
  });
  await new Promise((resolve) => server.listen(path, resolve));
  try {
    const memd = daemon.connection();
    assert.deepEqual(await memd.call("memory.search", { query: "x" }), { hits: [] });
    await assert.rejects(memd.call("memory.save", {}), (error) => {
      assert.equal(error.constructor, ConnectionLost);
      assert.match(error.message, /may have been carried out/);
      return true;
    });
    assert.deepEqual(heard, ["memory.search", "memory.search", "memory.save"]);
    memd.close();
  } finally {
    server.close();
    await daemon.close();
  }
});

test("an answer that stays away is NoAnswer, and the next call has a socket of its own", () =>
  withDaemon(async (daemon) => {
    const memd = daemon.connection({ timeout: 300 });
    daemon.signal("SIGSTOP");
    await assert.rejects(memd.call("daemon.status"), NoAnswer);
    daemon.signal("SIGCONT");
    const patient = daemon.connection();
    assert.equal(typeof (await patient.call("daemon.status")).pid, "number");
    memd.close();
    patient.close();
  }));

test("nobody there, and no start allowed", async () => {
  const daemon = new Daemon();
  try {
    await assert.rejects(connect({ env: daemon.env, autostart: false }), (error) => {
      assert.equal(error.constructor, Unavailable);
      assert.match(error.message, /starting one is switched off/);
      return true;
    });
    await assert.rejects(connect({ env: { ...daemon.env, MEMD_NO_AUTOSTART: "1" } }), /switched off/);
    await assert.rejects(connect({ env: { ...daemon.env, PATH: "/nowhere" } }), /pip install memd/);
    assert.equal(existsSync(daemon.env.MEMD_HOME), false);
  } finally {
    await daemon.close();
  }
});

test("the daemon is started by whoever comes first, once", async () => {
  const daemon = new Daemon();
  try {
    const many = Array.from({ length: 4 }, () => new Connection({ env: daemon.env }));
    const pids = await Promise.all(many.map(async (memd) => (await memd.hello()).pid));
    assert.equal(new Set(pids).size, 1);
    for (const memd of many) memd.close();
  } finally {
    await daemon.close();
  }
});

test("a daemon of another home is refused", () =>
  withDaemon(async (daemon) => {
    const env = { ...daemon.env, MEMD_SOCKET: socketPath(daemon.env), MEMD_HOME: `${daemon.root}/other` };
    const memd = new Connection({ env, autostart: false });
    await assert.rejects(memd.call("daemon.status"), OtherHome);
    const careless = new Connection({ env, autostart: false, checkHome: false });
    assert.equal(typeof (await careless.call("daemon.status")).pid, "number");
    careless.close();
  }));

test("a socket of another user's is not spoken to", () =>
  withDaemon(async (daemon) => {
    const geteuid = process.geteuid;
    if (process.getuid() === 0) chownSync(socketPath(daemon.env), 65534, 65534);
    else process.geteuid = () => 65534;
    try {
      await assert.rejects(daemon.connection().call("daemon.status"), OtherOwner);
    } finally {
      process.geteuid = geteuid;
      if (process.getuid() === 0) chownSync(socketPath(daemon.env), 0, 0);
    }
  }));

test("activity comes as it happens, until nobody listens", () =>
  withDaemon(async (daemon) => {
    const memd = daemon.connection();
    const events = await memd.activity({ cwd: daemon.repo, timeout: 20_000 });
    const heard = [];
    await memd.call("memory.save", fact(daemon.repo, "gauge"));
    await memd.call("memory.forget", { cwd: daemon.repo, name: "gauge" });
    for await (const event of events) {
      heard.push([event.event, event.telemetry.slug]);
      if (heard.length === 2) break;
    }
    assert.deepEqual(heard, [["memory_write", "gauge"], ["memory_delete", "gauge"]]);
    await assert.rejects(events.next(), ConnectionLost);
    const quiet = await memd.activity({ timeout: 50 });
    await assert.rejects(quiet.next(), NoAnswer);
    await memd.call("memory.save", fact(daemon.repo, "later"));
    assert.equal((await quiet.next()).value.event, "memory_write");
    const waiting = quiet.next();
    waiting.catch(() => {});
    await daemon.kill();
    await assert.rejects(waiting, (error) => error instanceof ConnectionLost || error instanceof NoAnswer);
    quiet.close();
    memd.close();
  }));

test("an open socket keeps no program alive", () =>
  withDaemon(async (daemon) => {
    const script = `import { memory } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
      console.log((await memory.search("x")).total);`;
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
      env: daemon.env, cwd: daemon.repo, timeout: 20_000,
    });
    assert.equal(String(said), "0\n");
  }));
