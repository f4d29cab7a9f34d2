/**
 * Starting the daemon. Law: `memctl start` does it, which alone knows the start lock, systemd and how to let go.
 *
 * SPEC 13, "Autostart".
 */

import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

import { Unavailable } from "./errors.js";

/** Milliseconds that `memctl start` may take: another client's turn, systemd's, and its own. */
const WAIT = 20_000;

/** Have the daemon of this environment started, if nobody else starts it first. Throws `Unavailable`, saying why. */
export function start(env) {
  const program = found(env, "memctl");
  if (program === null) {
    throw new Unavailable("no memd answers and none is installed: PATH has no memctl; `pip install memd`");
  }
  return new Promise((resolve, reject) => {
    execFile(program, ["start"], { env, cwd: "/", timeout: WAIT }, (error, _, complaint) => {
      if (error === null) resolve();
      else reject(new Unavailable(`no memd answers and \`memctl start\` failed: ${complaint.trim() || error.message}`));
    });
  });
}

function found(env, name) {
  for (const directory of (env.PATH ?? "").split(delimiter)) {
    const path = join(directory, name);
    try {
      if (!isAbsolute(path) || !statSync(path).isFile()) continue;
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      continue;
    }
  }
  return null;
}
