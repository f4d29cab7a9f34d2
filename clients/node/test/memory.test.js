import assert from "node:assert/strict";
import { chdir, cwd } from "node:process";
import { test } from "node:test";

import { NotFound, NotRoot, ReadOnly, Refused, SaveCap, memory } from "../src/index.js";
import { Connection } from "../src/index.js";
import { Caller } from "../src/session.js";
import { withDaemon } from "./support.js";

/** The module `memory` in the environment of a daemon. */
async function inside(daemon, act, env = {}) {
  const before = { ...process.env };
  const directory = cwd();
  Object.assign(process.env, daemon.env, { MEMD_NO_AUTOSTART: "1" }, env);
  chdir(daemon.repo);
  try {
    return await act();
  } finally {
    await memory.close();
    chdir(directory);
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
}

test("a kernel's day", () =>
  withDaemon((daemon) =>
    inside(daemon, async () => {
      const entries = [];
      const started = await memory.start({ session: "run-7", onEntry: (entry) => entries.push(entry) });
      assert.deepEqual(started.lines, ["memory · 0 repo · 0 global · 0 unparsed"]);
      assert.equal(started.saves_left, 3);
      const saved = await memory.save("Run the forge tests with -k smoke first.", { type: "feedback" });
      assert.equal(saved.saves_left, 2);
      const [hit] = (await memory.search("forge tests", { limit: 1 })).hits;
      const note = await memory.read(hit.name, { scope: "repo" });
      assert.equal(note.text, "Run the forge tests with -k smoke first.");
      await memory.save("Run them with -k fast.", { name: note.name, type: "feedback", expect: note.hash, mood: "firm" });
      await assert.rejects(memory.save("x", { name: note.name, type: "feedback", expect: null }), { name: "Conflict" });
      const block = await memory.focus("How do I run the forge tests?");
      assert.match(block.fenced, /^<<<yi-external/);
      assert.equal((await memory.focus("something else")).text, block.text);
      assert.equal((await memory.index({ maxBytes: 4096 })).dropped, 0);
      assert.equal((await memory.list({ type: "feedback" })).total, 1);
      assert.equal((await memory.listMemory()).notes[0].body, "Run them with -k fast.");
      assert.deepEqual((await memory.history.search("forge", { limit: 2 })).hits, []);
      assert.equal(memory.compact, memory.history);
      await assert.rejects(memory.history.read("history://none/none"), NotFound);
      await memory.save("A third.", { type: "user" });
      await assert.rejects(memory.save("A fourth.", { type: "user" }), SaveCap);
      await assert.rejects(memory.save("No type."), Refused);
      assert.deepEqual((await memory.deleteMemory(note.name, "repo")).receipt.left, []);
      await assert.rejects(memory.forget(note.name), NotFound);
      assert.deepEqual(entries.map((entry) => [entry.type, entry.customType, entry.data.op]), [
        ["custom", "memory", "save"], ["custom", "memory", "read"], ["custom", "memory", "save"],
        ["custom", "memory", "save"], ["custom", "memory", "forget"],
      ]);
      await daemon.kill();
      await daemon.start();
      const resumed = await memory.start({ session: "run-7", resumed: true });
      assert.equal(resumed.saves_left, 0);
      assert.match(await memory.remember("I like tea."), /I like tea\.$/);
      await assert.rejects(memory.remember("  "), Refused);
    }),
  ));

test("MEMD_SESSION and MEMD_DEPTH name the session", () =>
  withDaemon(async (daemon) => {
    const memd = daemon.connection();
    const here = async (env, act) => {
      const caller = new Caller(memd, env);
      const directory = cwd();
      chdir(daemon.repo);
      try {
        return await act(caller);
      } finally {
        chdir(directory);
      }
    };
    await memd.call("session.start", { session: "host-1", cwd: daemon.repo, save_cap: 1 });
    await memd.call("session.update", { session: "host-1", read_only: true, switch: "ExitPlanMode" });
    await here({ MEMD_SESSION: "host-1" }, async (caller) => {
      await assert.rejects(caller.call("memory.save", { markdown: "x", fields: { type: "user" } }), ReadOnly);
    });
    await here({ MEMD_SESSION: "host-1.1", MEMD_DEPTH: "1" }, async (caller) => {
      await assert.rejects(caller.call("memory.search", { query: "x" }), (error) => {
        assert.ok(error instanceof NotRoot);
        assert.equal(
          error.message,
          "memory.search: only the root session keeps memory; the parent puts what a child needs in its task",
        );
        return true;
      });
    });
    await here({}, async (caller) => {
      const [one, other] = await Promise.all(
        ["one", "other"].map((name) => caller.call("memory.save", { markdown: name, fields: { name, type: "user" } })),
      );
      assert.deepEqual([one.saves_left, other.saves_left].sort(), [1, 2]);
    });
    const { records } = await memd.call("memory.log", { cwd: daemon.repo });
    assert.match(records[0].session, /^node-[0-9]+-[0-9a-f]{12}$/);
    assert.equal(records[0].session, records[1].session);
    assert.equal((await memd.call("memory.stats", { cwd: daemon.repo })).repo.sessions, 2);
    memd.close();
  }));

test("a session that the daemon lost is started again, in the directory it had", () =>
  withDaemon(async (daemon) => {
    const memd = new Connection({ env: daemon.env, autostart: false });
    const caller = new Caller(memd, {});
    await caller.start("lost-1", { cwd: daemon.repo, save_cap: null });
    await memd.call("session.end", { session: "lost-1" });
    await daemon.kill();
    await daemon.start();
    const saved = await caller.call("memory.save", { markdown: "x", fields: { type: "user" } });
    assert.equal(saved.saves_left, null);
    assert.equal((await memd.call("memory.list", { cwd: daemon.repo })).total, 1);
    memd.close();
  }));
