/**
 * An agent's long-lived memory, for a kernel. Law: one function a verb, in the one session of this process.
 *
 * Replies are plain objects; errors are the classes of `errors.js`. The daemon is started when none answers. SPEC 7, 13.
 */

import { resolve } from "node:path";

import { remember as brief } from "./brief.js";
import { Connection, defined } from "./connection.js";
import { Caller } from "./session.js";

const caller = new Caller(new Connection());

/** Start or resume a session and make every call in it from now on: its `lines`, `saves_left`, `block`. */
export function start({ session, cwd, depth, resumed, saveCap, transcript, onEntry } = {}) {
  const given = defined({
    cwd: cwd === undefined ? undefined : resolve(cwd),
    depth,
    resumed,
    save_cap: saveCap,
    transcript: transcript === undefined ? undefined : resolve(transcript),
  });
  return caller.start(session, given, onEntry);
}

/** The one block of notes that a session gets, made from its first prompt; later calls give it again. */
export function focus(prompt, { dialect, abstain } = {}) {
  return caller.call("memory.focus", defined({ prompt, dialect, abstain }));
}

/** The rows of all notes, at most `maxBytes`, for a kernel that shows them in every prompt. */
export function index({ maxBytes } = {}) {
  return caller.call("memory.index", defined({ max_bytes: maxBytes }));
}

/** Save one fact. `expect` is the hash last seen, null for "must not exist"; all other keys go over the note's block. */
export function save(markdown, { expect, ...fields } = {}) {
  return caller.call("memory.save", defined({ markdown, fields: defined(fields), expect }));
}

/** A note by its name or hook, or else the closest one with a warning; the read is counted. */
export function read(name, { scope } = {}) {
  return caller.call("memory.read", defined({ name, scope }));
}

/** The notes that share words with `query`, best first. */
export function search(query, { limit, scope, offset } = {}) {
  return caller.call("memory.search", defined({ query, limit, scope, offset }));
}

/** Delete a note and every version of it; the receipt. Never fuzzy. */
export function forget(name, { scope } = {}) {
  return caller.call("memory.forget", defined({ name, scope }));
}

/** Every note with its hook and counts, or those of one `scope` or `type`, with `bodies` the body as well. */
export function list({ scope, type, limit, offset, bodies } = {}) {
  return caller.call("memory.list", defined({ scope, type, limit, offset, bodies }));
}

/** Every note of both stores with its body, a shadowed global one marked `shadowed`. */
export function listMemory() {
  return list({ bodies: true });
}

/** Delete the note of exactly that `scope`, all versions. */
export function deleteMemory(name, scope) {
  return forget(name, { scope });
}

/** The brief by which an agent derives name, hook and type of `text` and saves it. It saves nothing itself. */
export async function remember(text) {
  return brief(text);
}

/** Past sessions of this repository. */
export const history = Object.freeze({
  /** The entries that share words with `query`, best first. */
  search(query, { limit, offset } = {}) {
    return caller.call("history.search", defined({ query, limit, offset }));
  },
  /** The whole text of the entry at a `history://` address. */
  read(url) {
    return caller.call("history.read", { url });
  },
});

/** The first seed's name for it. */
export const compact = history;

/** End the session of the process's own and close the sockets, which keep no process alive anyway. */
export function close() {
  return caller.close();
}
