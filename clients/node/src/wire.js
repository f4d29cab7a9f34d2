/**
 * One socket to a daemon. Law: one request at a time, and a socket that broke is never used again.
 *
 * JSON-RPC 2.0, one object a line (SPEC 12). A socket that nobody waits for keeps no process alive.
 */

import { statSync } from "node:fs";
import { createConnection } from "node:net";

import { BadReply, ConnectionLost, InvalidParams, NoAnswer, OtherOwner, TooLarge, Unavailable, fromReply } from "./errors.js";

export const MAX_REQUEST = 1024 * 1024;
export const MAX_REPLY = 8 * 1024 * 1024;
/** Milliseconds to wait for a daemon whose queue of new connections is full. */
export const DOOR_TIMEOUT = 30_000;
/** A request of at most so many bytes fits a socket at once: an error means that nothing of it was sent. */
const AT_ONCE = 64 * 1024;
/** Notifications that may wait for their reader; then the socket is read no further. */
const MAX_WAITING = 256;
const POLL = 10;

/** The connection had ended before the request was sent: it was not carried out, and may be sent again. */
export class NotSent extends ConnectionLost {}

/** Nobody listens at the path. */
export class NobodyThere extends Unavailable {}

export class Wire {
  #socket;
  #chunks = [];
  #length = 0;
  #lastId = 0;
  #waiting = null; // who is told of the next line: {resolve, reject}
  #lines = [];
  #error = null;

  constructor(socket, path) {
    this.path = path;
    this.#socket = socket;
    socket.on("data", (chunk) => this.#received(chunk));
    socket.on("end", () => this.#broke(new Error("it closed before the answer")));
    socket.on("error", (error) => this.#broke(error));
    socket.on("close", () => this.#broke(new Error("it closed before the answer")));
    socket.unref();
  }

  /** Whether a request may be sent: nothing, not even an end, has come in meanwhile. */
  async isUsable() {
    for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate); // lets an end that waits be seen
    return this.#error === null && this.#lines.length === 0 && this.#length === 0;
  }

  /** May be repeated. */
  close() {
    this.#error ??= new Error("it was closed");
    this.#socket.destroy();
  }

  /** The result of one request; `timeout` in ms covers all of it, null waits. Throws the daemon's error as its class. */
  async call(method, params, timeout) {
    const id = ++this.#lastId;
    const line = encode(method, params, id);
    const reply = await this.#exchange(method, line, id, timeout);
    if (reply.error !== undefined && reply.error !== null) throw fromReply(reply.error);
    if (reply.result === null || typeof reply.result !== "object") throw new BadReply(`${method}: the answer is no object`);
    return reply.result;
  }

  /** The parameters of the next notification of `method`, null after `timeout` ms; throws `ConnectionLost`. */
  async notified(method, timeout) {
    const until = timeout === null ? null : Date.now() + timeout;
    for (;;) {
      const line = await this.#next(until === null ? null : Math.max(0, until - Date.now()));
      if (line === null) return null;
      const message = decode(line);
      if (message.method === method && message.params !== null && typeof message.params === "object") return message.params;
    }
  }

  async #exchange(method, line, id, timeout) {
    const until = timeout === null ? null : Date.now() + timeout;
    this.#socket.ref();
    try {
      this.#socket.write(line);
      for (;;) {
        const text = await this.#next(until === null ? null : Math.max(0, until - Date.now()));
        if (text === null) {
          throw new NoAnswer(`${method}: no answer from ${this.path} within ${timeout / 1000} s; see \`memctl doctor\``);
        }
        const message = decode(text);
        if ("method" in message) continue;
        if (message.id === id || (message.id === null && "error" in message)) {
          this.#socket.unref();
          return message;
        }
        throw new BadReply(`an answer to another request came instead of one to ${id}`);
      }
    } catch (error) {
      this.close();
      if (error instanceof Unavailable) {
        if (error instanceof ConnectionLost && error.cause?.code === "EPIPE" && line.length <= AT_ONCE) {
          throw new NotSent(`the daemon at ${this.path} takes no requests any more`, {}, { cause: error.cause });
        }
        if (error instanceof ConnectionLost) throw new ConnectionLost(`${method}: ${error.message}`, {}, { cause: error.cause });
      }
      throw error;
    }
  }

  /** The next line, null after `timeout` ms. */
  #next(timeout) {
    if (this.#lines.length > 0) {
      const line = this.#lines.shift();
      if (this.#lines.length === 0) this.#socket.resume();
      return Promise.resolve(line);
    }
    if (this.#error !== null) return Promise.reject(this.#lost());
    return new Promise((resolve, reject) => {
      this.#socket.ref();
      const timer = timeout === null ? null : setTimeout(() => this.#tell(null), timeout);
      const done = (act) => (value) => {
        clearTimeout(timer);
        this.#waiting = null;
        this.#socket.unref();
        act(value);
      };
      this.#waiting = { resolve: done(resolve), reject: done(reject) };
    });
  }

  #tell(line) {
    if (this.#waiting !== null) {
      this.#waiting.resolve(line);
      return;
    }
    this.#lines.push(line);
    if (this.#lines.length >= MAX_WAITING) this.#socket.pause();
  }

  #received(chunk) {
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      this.#chunks.push(rest.subarray(0, end));
      const line = Buffer.concat(this.#chunks).toString("utf8");
      this.#chunks = [];
      this.#length = 0;
      rest = rest.subarray(end + 1);
      this.#tell(line);
    }
    if (rest.length > 0) {
      this.#chunks.push(rest);
      this.#length += rest.length;
    }
    if (this.#length > MAX_REPLY) this.#broke(new BadReply(`a reply of more than ${MAX_REPLY} bytes`));
  }

  #broke(error) {
    if (this.#error === null) this.#error = error;
    this.#socket.destroy();
    this.#waiting?.reject(this.#lost());
  }

  #lost() {
    if (this.#error instanceof BadReply) return this.#error;
    return new ConnectionLost(`the connection to ${this.path} broke: ${this.#error.message}`, {}, { cause: this.#error });
  }
}

/** A wire to whoever listens at `path`. Throws `NobodyThere`, `NoAnswer`, `OtherOwner` and `Unavailable`. */
export async function knock(path) {
  const until = Date.now() + DOOR_TIMEOUT;
  while (Date.now() < until) {
    try {
      checkOwner(path);
      return new Wire(await connected(path), path);
    } catch (error) {
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") throw new NobodyThere(error.code, {}, { cause: error });
      if (error instanceof Unavailable) throw error;
      if (error.code !== "EAGAIN") throw new Unavailable(`cannot connect to ${path}: ${error.code}`, {}, { cause: error });
    }
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
  throw new NoAnswer(`memd at ${path} let nobody in for ${DOOR_TIMEOUT / 1000} s`);
}

/** What an agent learned is not told to strangers: the socket's file must be ours, or root's, who listens for us. */
function checkOwner(path) {
  const { uid } = statSync(path);
  if (uid !== process.geteuid() && uid !== 0) {
    throw new OtherOwner(
      `${path} belongs to another user (uid ${uid}); nothing was sent. Set MEMD_SOCKET to a path in a directory of your own`,
    );
  }
}

function connected(path) {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.removeListener("error", reject);
      resolve(socket);
    });
  });
}

function encode(method, params, id) {
  const text = JSON.stringify({ jsonrpc: "2.0", method, params, id });
  if (/\\ud[89a-f]/.test(text.replaceAll("\\\\", ""))) {
    throw new InvalidParams(`${method}: text that is not Unicode: half of a surrogate pair`);
  }
  const line = Buffer.from(`${text}\n`, "utf8");
  if (line.length > MAX_REQUEST) {
    throw new TooLarge(`${method}: a request of ${line.length} bytes, over ${MAX_REQUEST}; nothing was sent`);
  }
  return line;
}

function decode(line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    throw new BadReply(`a reply that is not JSON: ${line.slice(0, 80)}`);
  }
  if (message === null || typeof message !== "object" || Array.isArray(message)) {
    throw new BadReply(`a reply that is no object: ${line.slice(0, 80)}`);
  }
  return message;
}
