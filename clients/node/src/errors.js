/**
 * What can go wrong, seen from a client. Law: one class a kind, each a `MemdError` in the daemon's words.
 *
 * What the daemon answers keeps its code, its message and its `data` (SPEC 12); what never reached one has code 0.
 */

export class MemdError extends Error {
  static code = 0;
  static kind = "unknown";

  constructor(message, data = {}, { code, kind, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code ?? new.target.code;
    this.kind = kind ?? new.target.kind;
    this.data = data;
  }
}

/** A bound is broken; `data` names `field`, `bound` and `got`. Nothing was changed. */
export class Refused extends MemdError { static code = -32001; static kind = "refused"; }
/** No note, version, session or entry of that name. */
export class NotFound extends MemdError { static code = -32002; static kind = "not_found"; }
/** The session is a child's: only the root keeps memory. */
export class NotRoot extends MemdError { static code = -32003; static kind = "not_root"; }
/** The session's saves are spent. */
export class SaveCap extends MemdError { static code = -32004; static kind = "save_cap"; }
/** A store file exists but does not read; nothing was changed. */
export class Unreadable extends MemdError { static code = -32005; static kind = "unreadable"; }
/** `expect` is not the head; `data.hash` is what the head is, null when there is none. */
export class Conflict extends MemdError { static code = -32006; static kind = "conflict"; }
/** The store's lock was not had in time; the same call may succeed later. */
export class Busy extends MemdError { static code = -32007; static kind = "busy"; }
/** Disk full, read-only, an I/O error: nothing was acknowledged. */
export class Storage extends MemdError { static code = -32008; static kind = "storage"; }
/** Many notes are gone from the store at once: no write until a person has looked. */
export class Suspended extends MemdError { static code = -32009; static kind = "suspended"; }
/** A request over 1 MiB or a reply over 8 MiB. */
export class TooLarge extends MemdError { static code = -32010; static kind = "too_large"; }
/** Client and daemon have no protocol version in common. */
export class NoProtocol extends MemdError { static code = -32011; static kind = "protocol"; }
/** The session is in its host's plan mode. */
export class ReadOnly extends MemdError { static code = -32012; static kind = "read_only"; }
/** The daemon could not read the request as JSON. */
export class ParseError extends MemdError { static code = -32700; static kind = "parse_error"; }
/** The request is JSON but no JSON-RPC request. */
export class InvalidRequest extends MemdError { static code = -32600; static kind = "invalid_request"; }
/** The daemon has no verb of that name (an older memd, perhaps). */
export class MethodNotFound extends MemdError { static code = -32601; static kind = "method_not_found"; }
/** A parameter is unknown, missing, of another type or out of range. */
export class InvalidParams extends MemdError { static code = -32602; static kind = "invalid_params"; }
/** The daemon failed; the message's incident id finds the reason in its log. */
export class InternalError extends MemdError { static code = -32603; static kind = "internal_error"; }
/** Nobody answers, and starting a daemon was not allowed or did not help. */
export class Unavailable extends MemdError { static kind = "unavailable"; }
/** The connection broke before the answer; whether a write was carried out is not known. */
export class ConnectionLost extends Unavailable { static kind = "connection_lost"; }
/** The daemon did not answer in time; whether a write was carried out is not known. */
export class NoAnswer extends Unavailable { static kind = "no_answer"; }
/** What came back is no JSON-RPC reply: whoever listens there is not memd. */
export class BadReply extends Unavailable { static kind = "bad_reply"; }
/** The daemon that answers serves another home than this environment names. */
export class OtherHome extends Unavailable { static kind = "other_home"; }
/** Another user's socket is at that path; nothing was sent. */
export class OtherOwner extends Unavailable { static kind = "other_owner"; }
/** The environment names a place that cannot be used. */
export class BadPlace extends MemdError { static kind = "bad_place"; }
/** The socket's path does not fit a Unix socket address; `length` and `limit` in bytes. */
export class SocketPathTooLong extends BadPlace {
  static kind = "socket_path_too_long";

  constructor(path, length, limit) {
    super(
      `the socket path ${path} is ${length} bytes long, over this platform's ${limit};` +
        " set MEMD_SOCKET to a shorter one",
    );
    Object.assign(this, { path, length, limit });
  }
}

/** The class of every code of SPEC 12. */
export const BY_CODE = new Map(
  [
    Refused, NotFound, NotRoot, SaveCap, Unreadable, Conflict, Busy, Storage, Suspended, TooLarge, NoProtocol, ReadOnly,
    ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError,
  ].map((error) => [error.code, error]),
);

/** The error for a reply's `error` member, ready to throw; `BadReply` when it is no error object. */
export function fromReply(error) {
  if (error === null || typeof error !== "object" || !Number.isInteger(error.code) || typeof error.message !== "string") {
    return new BadReply("the daemon's error has no code or no message");
  }
  const data = error.data !== null && typeof error.data === "object" ? error.data : {};
  const Known = BY_CODE.get(error.code);
  if (Known) return new Known(error.message, data);
  return new MemdError(error.message, data, {
    code: error.code,
    kind: typeof data.kind === "string" ? data.kind : undefined,
  });
}
