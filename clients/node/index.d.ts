/** Types of `@memd/client`. Replies are plain objects; a later memd may add fields. */

export type Scope = "repo" | "global";
export type NoteType = "user" | "feedback" | "project" | "reference";
export type Env = Readonly<Record<string, string | undefined>>;

export class MemdError extends Error {
  constructor(message: string, data?: Record<string, unknown>, more?: { code?: number; kind?: string; cause?: unknown });
  static readonly code: number;
  static readonly kind: string;
  /** Stable: SPEC 12's codes, 0 for what never reached a daemon. */
  readonly code: number;
  /** Stable: `refused`, `not_found`, … */
  readonly kind: string;
  /** The wire's `error.data`. */
  readonly data: Record<string, any>;
}
/** A bound is broken; `data` names `field`, `bound` and `got`. Nothing was changed. */
export class Refused extends MemdError {}
/** No note, version, session or entry of that name. */
export class NotFound extends MemdError {}
/** The session is a child's: only the root keeps memory. */
export class NotRoot extends MemdError {}
/** The session's saves are spent. */
export class SaveCap extends MemdError {}
/** A store file exists but does not read; nothing was changed. */
export class Unreadable extends MemdError {}
/** `expect` is not the head; `data.hash` is what the head is, null when there is none. */
export class Conflict extends MemdError {}
/** The store's lock was not had in time; the same call may succeed later. */
export class Busy extends MemdError {}
/** Disk full, read-only, an I/O error: nothing was acknowledged. */
export class Storage extends MemdError {}
/** Many notes are gone from the store at once: no write until a person has looked. */
export class Suspended extends MemdError {}
/** A request over 1 MiB or a reply over 8 MiB. */
export class TooLarge extends MemdError {}
/** Client and daemon have no protocol version in common. */
export class NoProtocol extends MemdError {}
/** The session is in its host's plan mode. */
export class ReadOnly extends MemdError {}
/** The daemon could not read the request as JSON. */
export class ParseError extends MemdError {}
/** The request is JSON but no JSON-RPC request. */
export class InvalidRequest extends MemdError {}
/** The daemon has no verb of that name (an older memd, perhaps). */
export class MethodNotFound extends MemdError {}
/** A parameter is unknown, missing, of another type or out of range. */
export class InvalidParams extends MemdError {}
/** The daemon failed; the message's incident id finds the reason in its log. */
export class InternalError extends MemdError {}
/** Nobody answers, and starting a daemon was not allowed or did not help. */
export class Unavailable extends MemdError {}
/** The connection broke before the answer; whether a write was carried out is not known. */
export class ConnectionLost extends Unavailable {}
/** The daemon did not answer in time; whether a write was carried out is not known. */
export class NoAnswer extends Unavailable {}
/** What came back is no JSON-RPC reply: whoever listens there is not memd. */
export class BadReply extends Unavailable {}
/** The daemon that answers serves another home than this environment names. */
export class OtherHome extends Unavailable {}
/** Another user's socket is at that path; nothing was sent. */
export class OtherOwner extends Unavailable {}
/** The environment names a place that cannot be used. */
export class BadPlace extends MemdError {}
/** The socket's path does not fit a Unix socket address; `length` and `limit` in bytes. */
export class SocketPathTooLong extends BadPlace {
  constructor(path: string, length: number, limit: number);
  readonly path: string;
  readonly length: number;
  readonly limit: number;
}

/** The class of every code of SPEC 12. */
export const BY_CODE: ReadonlyMap<number, typeof MemdError>;
/** The error for a reply's `error` member, ready to throw. */
export function fromReply(error: unknown): MemdError;

/** What a kernel appends to its transcript: which version of which note was written or read. */
export interface Pointer {
  op: string;
  name: string;
  scope: Scope;
  hash: string;
}

export interface Entry {
  type: "custom";
  customType: "memory";
  data: Pointer;
}

export interface Saved {
  name: string;
  description: string;
  type: NoteType;
  scope: Scope;
  updated: boolean;
  hash: string;
  warnings: string[];
  pointer: Pointer;
  saved?: number;
  /** null: any number. */
  saves_left?: number | null;
  redacted?: boolean;
}

export interface Note {
  name: string;
  description: string;
  type: NoteType | null;
  scope: Scope;
  text: string;
  hash: string;
  warnings: string[];
  pointer: Pointer | null;
  redacted?: boolean;
}

export interface Hit {
  name: string;
  description: string;
  scope: Scope;
  redacted?: boolean;
}

export interface Found {
  hits: Hit[];
  total: number;
  notice?: string;
}

export interface Forgotten {
  name: string;
  scope: Scope;
  receipt: { versions: number; bytes: number; left: string[] };
  pointer: Pointer;
}

export interface Row {
  name: string;
  scope: Scope;
  type: NoteType | null;
  description: string;
  hash: string;
  saves: number;
  reads: number;
  last: number | null;
  unparsed: boolean;
  shadowed: boolean;
  body?: string;
  redacted?: boolean;
}

export interface Listed {
  notes: Row[];
  total: number;
  notice?: string;
}

export interface Shown {
  name: string;
  scope: Scope;
  type: NoteType | null;
  score: number | null;
  shown: "body" | "row";
  cut: boolean;
}

export interface Block {
  /** null for a blank prompt. */
  text: string | null;
  /** The same between fences that no note can close or forge. */
  fenced: string | null;
  notes: Shown[];
  total: number;
  budget: number;
  frozen: boolean;
  redacted?: boolean;
}

export interface Index {
  text: string | null;
  fenced: string | null;
  dropped: number;
  redacted?: boolean;
}

export interface Started {
  lines: string[];
  saves_left: number | null;
  block?: Block;
}

export interface EntryHit {
  session: string;
  entryId: string;
  type: string;
  snippet: string;
  url: string;
  cut?: boolean;
  redacted?: boolean;
}

export interface Entries {
  hits: EntryHit[];
  total: number;
  notice?: string;
}

export interface PastEntry {
  session: string;
  entryId: string;
  type: string;
  text: string;
  url: string;
  redacted?: boolean;
}

export interface Event {
  event:
    | "memory_write"
    | "memory_update"
    | "memory_delete"
    | "memory_edit"
    | "memory_import"
    | "memory_index_truncated"
    | "session_start";
  /** For people. */
  line: string;
  telemetry: { scope?: Scope; slug?: string; droppedCount?: number };
  session?: string;
  scope?: Scope;
  saved?: number;
  pointer?: Pointer;
}

export interface Options {
  env?: Env;
  /** false: a daemon that is not there is `Unavailable`. */
  autostart?: boolean;
  /** Milliseconds for each call, null for any time. */
  timeout?: number | null;
  /** false: a daemon of another home is taken, too. */
  checkHome?: boolean;
}

/** Calls to one daemon; those made at once go over sockets of their own, which keep no process alive. */
export class Connection {
  constructor(options?: Options);
  /** Make sure that a daemon answers. */
  open(): Promise<void>;
  /** Close the idle sockets. May be repeated; a later call opens anew. */
  close(): void;
  /** The result of any verb, its parameters as on the wire. */
  call(method: string, params?: Record<string, unknown>): Promise<any>;
  hello(): Promise<{
    version: string;
    protocol_min: number;
    protocol_max: number;
    capabilities: string[];
    pid: number;
    home: string;
  }>;
  /** What happens from now on in one place, or everywhere; `timeout` in ms for each event. */
  activity(place?: { cwd?: string; session?: string; timeout?: number | null }): Promise<Activity>;
}

/** Events, one a turn of a `for await`. */
export class Activity implements AsyncIterableIterator<Event> {
  private constructor();
  [Symbol.asyncIterator](): this;
  next(): Promise<IteratorResult<Event, undefined>>;
  return(): Promise<IteratorResult<Event, undefined>>;
  close(): void;
}

/** An open `Connection`. */
export function connect(options?: Options): Promise<Connection>;

export const SOCKET_PATH_LIMIT: number;
export function home(env?: Env): string;
export function configPath(env?: Env): string;
export function socketPath(env?: Env): string;
export function logPath(env?: Env): string;
export function startLockPath(env?: Env): string;
export function homeId(env?: Env): string;
export function runtimeDirectory(env?: Env): string | null;
export function userHome(env?: Env): string;

export interface History {
  search(query: string, options?: { limit?: number; offset?: number }): Promise<Entries>;
  read(url: string): Promise<PastEntry>;
}

export interface Memory {
  /** Start or resume a session and make every call in it from now on. `saveCap` null: any number of saves. */
  start(options?: {
    session?: string;
    cwd?: string;
    depth?: number;
    resumed?: boolean;
    saveCap?: number | null;
    transcript?: string;
    onEntry?: (entry: Entry) => unknown;
  }): Promise<Started>;
  focus(prompt: string, options?: { dialect?: "python" | "mcp" | "cli"; abstain?: boolean }): Promise<Block>;
  index(options?: { maxBytes?: number }): Promise<Index>;
  /** `expect`: the hash last seen, null for "must not exist", "exists"; any other key goes over the note's block. */
  save(
    markdown: string,
    options?: { name?: string; description?: string; type?: NoteType; scope?: Scope; expect?: string | null } & Record<
      string,
      string | null | undefined
    >,
  ): Promise<Saved>;
  read(name: string, options?: { scope?: Scope }): Promise<Note>;
  search(query: string, options?: { limit?: number; scope?: Scope; offset?: number }): Promise<Found>;
  forget(name: string, options?: { scope?: Scope }): Promise<Forgotten>;
  list(options?: {
    scope?: Scope;
    type?: NoteType;
    limit?: number;
    offset?: number;
    bodies?: boolean;
  }): Promise<Listed>;
  listMemory(): Promise<Listed>;
  deleteMemory(name: string, scope: Scope): Promise<Forgotten>;
  remember(text: string): Promise<string>;
  history: History;
  compact: History;
  /** End the session of the process's own and close the sockets. */
  close(): Promise<void>;
}

export const memory: Memory;
