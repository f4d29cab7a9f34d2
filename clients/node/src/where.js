/**
 * Where memd's things are. Law: the same answers as the Python client's, from the same table of cases (SPEC 1).
 *
 * Every function reads the environment it is given at the call, touches no file but the runtime directory it looks
 * at, and makes nothing.
 */

import { createHash } from "node:crypto";
import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";

import { BadPlace, SocketPathTooLong } from "./errors.js";

/** The longest socket path in bytes: what fits the address structure with its last NUL. */
export const SOCKET_PATH_LIMIT = process.platform === "linux" ? 107 : 103;

const RUN_USER = "/run/user";

/** The absolute path of memd's home; nothing says that it exists. Throws `BadPlace`. */
export function home(env = process.env) {
  const place = given(env, "MEMD_HOME");
  if (place !== null) return place;
  return `${bare(xdg(env, "XDG_DATA_HOME") ?? `${bare(userHome(env))}/.local/share`)}/memd`;
}

/** The absolute path of the config file. Throws `BadPlace`. */
export function configPath(env = process.env) {
  const config = given(env, "MEMD_CONFIG");
  if (config !== null) return config;
  return `${bare(xdg(env, "XDG_CONFIG_HOME") ?? `${bare(userHome(env))}/.config`)}/memd/config.toml`;
}

/** The absolute path of the daemon's socket. Throws `BadPlace`, and `SocketPathTooLong` past the platform's limit. */
export function socketPath(env = process.env, runUser = RUN_USER) {
  const path = given(env, "MEMD_SOCKET") ?? defaultSocket(env, runUser);
  const length = Buffer.byteLength(path);
  if (length > SOCKET_PATH_LIMIT) throw new SocketPathTooLong(path, length, SOCKET_PATH_LIMIT);
  return path;
}

/** The file that takes the output of a daemon a client started. */
export function logPath(env = process.env) {
  return `${bare(home(env))}/memd.log`;
}

/** The file whose lock a client holds while it starts the daemon. */
export function startLockPath(env = process.env) {
  return `${bare(home(env))}/.start.lock`;
}

/** What `daemon.hello` answers as `home`: 16 hex digits of the sha256 of the home's real path. */
export function homeId(env = process.env) {
  return createHash("sha256").update(realPath(home(env))).digest("hex").slice(0, 16);
}

/** The user's runtime directory while it exists, is ours and is closed to others, else null. */
export function runtimeDirectory(env = process.env, runUser = RUN_USER) {
  const places = [xdg(env, "XDG_RUNTIME_DIR"), `${runUser}/${process.getuid()}`];
  return places.find((directory) => directory !== null && isOursAlone(directory)) ?? null;
}

/** The user's own home directory. Throws `BadPlace` when neither `HOME` nor the user database has it. */
export function userHome(env = process.env) {
  if (isAbsolute(env.HOME)) return withoutLastSlash(env.HOME);
  try {
    return userInfo().homedir;
  } catch {
    throw new BadPlace("HOME is not set and this user has no entry; set MEMD_HOME");
  }
}

function defaultSocket(env, runUser) {
  const runtime = env.MEMD_HOME ? null : runtimeDirectory(env, runUser);
  return runtime === null ? `${bare(home(env))}/run/memd.sock` : `${bare(runtime)}/memd/memd.sock`;
}

/** Whether it is a directory itself (a link could be turned elsewhere), ours, and closed to others. */
function isOursAlone(directory) {
  try {
    const status = lstatSync(directory);
    return status.isDirectory() && status.uid === process.getuid() && (status.mode & 0o077) === 0;
  } catch {
    return false;
  }
}

/** What one of memd's own variables says, `~` expanded; null when it is unset or empty. Throws for a relative one. */
function given(env, variable) {
  const value = env[variable];
  if (!value) return null;
  const path = expanded(env, value);
  if (!isAbsolute(path)) {
    throw new BadPlace(`${variable} must be an absolute path (or begin with ~/), not '${value}'`);
  }
  return withoutLastSlash(path);
}

function expanded(env, path) {
  if (!path.startsWith("~")) return path;
  const slash = path.includes("/") ? path.indexOf("/") : path.length;
  const user = path.slice(1, slash);
  const directory = user ? homeOf(user) : userHome(env);
  if (directory === null) return path;
  return bare(directory) + path.slice(slash) || "/";
}

/** The home of another user of this machine, null when nobody is called so. */
function homeOf(user) {
  try {
    const entry = readFileSync("/etc/passwd", "utf8").split("\n").find((line) => line.startsWith(`${user}:`));
    return entry?.split(":")[5] || null;
  } catch {
    return null;
  }
}

/** An XDG base directory; null when it is unset, empty or relative, as the XDG rules have it. */
function xdg(env, variable) {
  return isAbsolute(env[variable]) ? withoutLastSlash(env[variable]) : null;
}

/** A path's real one, as far as there is something. */
function realPath(path) {
  try {
    return realpathSync(path);
  } catch {
    return path === "/" ? path : join(realPath(dirname(path)), path.slice(path.lastIndexOf("/") + 1));
  }
}

function isAbsolute(path) {
  return typeof path === "string" && path.startsWith("/");
}

/** One path has one spelling. */
function withoutLastSlash(path) {
  return path.replace(/\/+$/, "") || "/";
}

/** A directory to put `/name` after. */
function bare(directory) {
  return directory === "/" ? "" : directory;
}
