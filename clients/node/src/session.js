/**
 * The session that calls are made in. Law: it is started once, by the call that needs it first, and never twice.
 *
 * Which one a process calls in: that of the last `start`, else the one `MEMD_SESSION` names, else its own. SPEC 8, 13.
 */

import { randomBytes } from "node:crypto";

import { ConnectionLost, InvalidParams, NotFound } from "./errors.js";

/** No reads, and yet sent again when the connection broke: done twice they leave what once leaves. */
const REPEATABLE = new Set(["memory.focus", "session.end", "session.start", "session.update"]);

/** How deep below the root this process is, by `MEMD_DEPTH`. Throws `InvalidParams`: no child passes as a root. */
export function depthOf(env) {
  const text = env.MEMD_DEPTH || "0";
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  throw new InvalidParams(`MEMD_DEPTH is no whole number from 0 on: '${text.slice(0, 80)}'`);
}

export class Session {
  starts = 0;
  #connection;
  #given;
  #isHosts;
  #onEntry;
  #turn = Promise.resolve();

  /** With `isHosts` the host may have started it: then it is started only when the daemon does not know it. */
  constructor(connection, given, { isHosts, onEntry }) {
    this.id = given.session;
    this.#connection = connection;
    this.#given = given;
    this.#isHosts = isHosts;
    this.#onEntry = onEntry;
  }

  /** Start or resume it; what `session.start` answers. */
  start() {
    return this.#inTurn(() => this.#start());
  }

  /** The result of a verb in this session, which is started if nobody did. */
  async call(method, params) {
    if (!this.#isHosts) await this.#startUnless(0);
    const seen = this.starts;
    const given = { session: this.id, ...params };
    try {
      return this.#handOn(await this.#sent(method, given));
    } catch (error) {
      if (!(error instanceof NotFound) || error.data.field !== "session") throw error;
    }
    await this.#startUnless(seen);
    return this.#handOn(await this.#sent(method, given));
  }

  /** Give the host the entry of a reply that has a pointer. The note is written: what the host throws fails no call. */
  #handOn(reply) {
    if (reply.pointer && this.#onEntry) {
      try {
        this.#onEntry({ type: "custom", customType: "memory", data: reply.pointer });
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
    return reply;
  }

  #startUnless(seen) {
    return this.#inTurn(async () => {
      if (this.starts <= seen) await this.#start();
    });
  }

  async #start() {
    this.#given.cwd ??= process.cwd();
    const answer = await this.#sent("session.start", this.#given);
    this.starts += 1;
    return answer;
  }

  #inTurn(act) {
    const done = this.#turn.then(act);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #sent(method, params) {
    try {
      return await this.#connection.call(method, params);
    } catch (error) {
      if (!(error instanceof ConnectionLost) || !REPEATABLE.has(method)) throw error;
    }
    return this.#connection.call(method, params);
  }
}

/** The session of this process. */
export class Caller {
  #connection;
  #env;
  #session = null;
  #own = null;

  constructor(connection, env = process.env) {
    this.#connection = connection;
    this.#env = env;
  }

  /** Start or resume a session and call in it from now on. */
  async start(session, given, onEntry) {
    return this.#choose(session, given, { onEntry, isHosts: false }).start();
  }

  /** The result of a verb in this process's session. */
  async call(method, params) {
    this.#session ??= this.#choose(undefined, {}, { isHosts: true });
    return this.#session.call(method, params);
  }

  /** End the session of the process's own, if there is one, and close the sockets. */
  async close() {
    const own = this.#own;
    if (this.#session === own) this.#session = null;
    this.#own = null;
    try {
      if (own !== null && own.starts > 0) await this.#connection.call("session.end", { session: own.id });
    } finally {
      this.#connection.close();
    }
  }

  #choose(session, given, { onEntry, isHosts }) {
    const named = session || this.#env.MEMD_SESSION;
    const id = named || (this.#own?.id ?? `node-${process.pid}-${randomBytes(6).toString("hex")}`);
    const whole = { ...given, depth: given.depth ?? depthOf(this.#env), session: id };
    this.#session = new Session(this.#connection, whole, { isHosts: isHosts && Boolean(named), onEntry });
    if (!named) this.#own = this.#session;
    return this.#session;
  }
}
