/** A real daemon on a throwaway home. `MEMD_BIN` is the directory of memd's programs, for its own tests. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";

import { Connection, Unavailable } from "../src/index.js";

const BIN = process.env.MEMD_BIN ?? "";

export class Daemon {
  #process = null;

  constructor() {
    this.root = mkdtempSync("/tmp/memd-node-");
    this.repo = join(this.root, "repo");
    mkdirSync(join(this.repo, ".git"), { recursive: true });
    mkdirSync(join(this.root, "user"));
    this.env = {
      HOME: join(this.root, "user"),
      MEMD_HOME: join(this.root, "home"),
      PATH: BIN ? `${BIN}${delimiter}${process.env.PATH}` : process.env.PATH,
    };
  }

  async start() {
    this.#process = spawn("memd", [], { env: this.env, cwd: "/", stdio: ["ignore", "ignore", "inherit"] });
    const connection = this.connection();
    for (;;) {
      if (this.#process.exitCode !== null) throw new Error("the daemon ended");
      try {
        await connection.hello();
        break;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    connection.close();
  }

  /** A connection that starts no daemon. */
  connection(options = {}) {
    return new Connection({ env: this.env, autostart: false, ...options });
  }

  /** End it as a crash does. */
  async kill() {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
    this.#process = null;
  }

  /** Freeze it, or let it go on. */
  signal(name) {
    this.#process.kill(name);
  }

  async close() {
    if (this.#process !== null) await this.kill();
    else {
      const connection = this.connection();
      await connection.call("daemon.stop").catch(() => {});
      connection.close();
    }
    rmSync(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** Run with a daemon that answers. */
export async function withDaemon(act) {
  const daemon = new Daemon();
  try {
    await daemon.start();
    return await act(daemon);
  } finally {
    await daemon.close();
  }
}
