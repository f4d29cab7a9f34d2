/**
 * Connections to a daemon. Law: a read is sent again once when the daemon went away; a write never is.
 *
 * They open by themselves, starting the daemon when nobody answers. A daemon of another home is refused: a socket
 * inside the home proves itself, one outside is asked with `daemon.hello`. SPEC 13.
 */

import { ConnectionLost, NoAnswer, OtherHome, Unavailable } from "./errors.js";
import { start } from "./starting.js";
import { home, homeId, logPath, socketPath } from "./where.js";
import { NobodyThere, NotSent, knock } from "./wire.js";

/** Milliseconds an answer may take. */
export const TIMEOUT = 30_000;
export const PROTOCOL = 1;
/** Idle sockets kept open; the daemon has 256 for all its clients. */
const KEPT = 4;

/** The verbs that may be sent twice. `memory.focus` joins them when it freezes nothing. */
export const READS = new Set([
  "daemon.hello", "daemon.status", "history.read", "history.search", "memory.check", "memory.diff", "memory.index",
  "memory.list", "memory.log", "memory.read", "memory.search", "memory.show", "memory.stats", "memory.verify",
  "rpc.discover", "store.list",
]);

/** Whether sending the request twice does no harm. */
export function isRead(method, params) {
  return READS.has(method) || (method === "memory.focus" && !("session" in params));
}

export class Connection {
  #env;
  #autostart;
  #timeout;
  #checkHome;
  #idle = [];

  constructor({ env = process.env, autostart = true, timeout = TIMEOUT, checkHome = true } = {}) {
    this.#env = env;
    this.#autostart = autostart;
    this.#timeout = timeout;
    this.#checkHome = checkHome;
  }

  /** Make sure that a daemon answers. Throws `Unavailable` or `BadPlace`. */
  async open() {
    this.#putBack(await this.#usable());
  }

  /** Close the idle sockets. May be repeated; a later call opens anew. */
  close() {
    for (const wire of this.#idle.splice(0)) wire.close();
  }

  /** The result of `method`. Calls that are made at once go over sockets of their own. */
  async call(method, params = {}) {
    const given = defined(params);
    let wire = await this.#usable();
    let result;
    try {
      result = await wire.call(method, given, this.#timeout);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) {
        if (!(error instanceof Unavailable)) this.#putBack(wire);
        throw error;
      }
      if (!(error instanceof NotSent) && !isRead(method, given)) {
        throw new ConnectionLost(`${error.message}; it may have been carried out all the same`, {}, { cause: error });
      }
      wire = await this.#usable();
      result = await wire.call(method, given, this.#timeout);
    }
    this.#putBack(wire);
    return result;
  }

  /** What `daemon.hello` answers. Throws `NoProtocol`, and `OtherHome` for a daemon of another home. */
  async hello() {
    const answer = await this.call("daemon.hello", { protocol: PROTOCOL });
    this.#refuseOtherHome(answer);
    return answer;
  }

  /** What happens from now on in one place, or everywhere: `for await (const event of await memd.activity({ cwd }))`. */
  async activity({ cwd, session, timeout = null } = {}) {
    const wire = await this.#newWire();
    try {
      await wire.call("activity.subscribe", defined({ cwd, session }), this.#timeout);
    } catch (error) {
      wire.close();
      throw error;
    }
    return new Activity(wire, timeout);
  }

  async #usable() {
    const path = socketPath(this.#env);
    while (this.#idle.length > 0) {
      const wire = this.#idle.pop();
      if (wire.path === path && (await wire.isUsable())) return wire;
      wire.close();
    }
    try {
      return await this.#newWire();
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      return this.#newWire(); // it was let in by a daemon that then went away; nothing of ours was sent yet
    }
  }

  #putBack(wire) {
    if (this.#idle.length < KEPT) this.#idle.push(wire);
    else wire.close();
  }

  async #newWire() {
    const wire = await reach(this.#env, this.#autostart);
    if (!this.#checkHome || wire.path.startsWith(`${home(this.#env)}/`)) return wire;
    try {
      this.#refuseOtherHome(await wire.call("daemon.hello", { protocol: PROTOCOL }, this.#timeout));
    } catch (error) {
      wire.close();
      throw error;
    }
    return wire;
  }

  #refuseOtherHome(answer) {
    if (this.#checkHome && answer.home !== homeId(this.#env)) {
      throw new OtherHome(
        `the daemon at ${socketPath(this.#env)} serves another home than ${home(this.#env)};` +
          " give each home a socket of its own (MEMD_HOME alone does)",
      );
    }
  }
}

/** Events of the daemon, one a turn of a `for await`. Whoever lags is dropped by the daemon: listen anew. */
export class Activity {
  #wire;
  #timeout;

  constructor(wire, timeout) {
    this.#wire = wire;
    this.#timeout = timeout;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** The next event. Throws `NoAnswer` when none came in `timeout` ms (the next call goes on), and `ConnectionLost`. */
  async next() {
    const value = await this.#wire.notified("activity", this.#timeout);
    if (value === null) throw new NoAnswer(`no activity within ${this.#timeout / 1000} s`);
    return { value, done: false };
  }

  /** Ends the `for await`. */
  async return() {
    this.close();
    return { value: undefined, done: true };
  }

  /** Listen no more. May be repeated. */
  close() {
    this.#wire.close();
  }
}

/** An open `Connection`. Throws `Unavailable`. */
export async function connect(options = {}) {
  const connection = new Connection(options);
  await connection.open();
  return connection;
}

/** An object without what is not given; null says something and stays. */
export function defined(params) {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

async function reach(env, autostart) {
  const path = socketPath(env);
  try {
    return await knock(path);
  } catch (error) {
    if (!(error instanceof NobodyThere)) throw error;
    if (!autostart || !["", "0", undefined].includes(env.MEMD_NO_AUTOSTART)) {
      throw new Unavailable(
        `no memd answers at ${path} (${error.message}) and starting one is switched off;` +
          ` start it with \`memctl start\` or \`memd\`; its log: ${logPath(env)}`,
        {},
        { cause: error },
      );
    }
  }
  await start(env);
  try {
    return await knock(path);
  } catch (error) {
    if (!(error instanceof NobodyThere)) throw error;
    throw new Unavailable(`memd was started but does not answer at ${path}; its log should say why: ${logPath(env)}`);
  }
}
