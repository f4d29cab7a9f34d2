import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { test } from "node:test";

import { MemdError, configPath, home, homeId, logPath, socketPath, startLockPath } from "../src/index.js";
import { depthOf } from "../src/session.js";

const { cases } = JSON.parse(readFileSync(new URL("../../../tests/cases/where.json", import.meta.url)));
const LOOK = { home, config: configPath, log: logPath, lock: startLockPath, home_id: homeId, socket: socketPath, depth: depthOf };

for (const [number, one] of cases.entries()) {
  test(`where: case ${number}, ${one.of} of ${JSON.stringify(one.env).slice(0, 80)}`, () => {
    const run = mkdtempSync("/tmp/memd-");
    const told = (text) => text.replaceAll("{run}", run).replaceAll("{uid}", process.getuid());
    try {
      for (const [name, mode] of Object.entries(one.dirs ?? {})) {
        mkdirSync(`${run}/${told(name)}`);
        chmodSync(`${run}/${told(name)}`, Number.parseInt(mode, 8));
      }
      for (const [name, target] of Object.entries(one.links ?? {})) symlinkSync(`${run}/${target}`, `${run}/${name}`);
      const env = { HOME: "/u" };
      for (const [name, value] of Object.entries(one.env)) env[name] = told(value);
      if (one.throws) assert.throws(() => LOOK[one.of](env, run), (e) => e instanceof MemdError && e.kind === one.throws);
      else assert.equal(LOOK[one.of](env, run), typeof one.gives === "string" ? told(one.gives) : one.gives);
    } finally {
      rmSync(run, { recursive: true });
    }
  });
}
