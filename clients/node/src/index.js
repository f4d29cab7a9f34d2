/**
 * A client of memd's daemon, for whoever speaks JavaScript. Law: nothing but Node, usable without memd.
 *
 *     import { memory } from "@memd/client";
 *     const page = await memory.search("forge tests");
 */

export { Activity, Connection, connect } from "./connection.js";
export * from "./errors.js";
export * as memory from "./memory.js";
export {
  SOCKET_PATH_LIMIT, configPath, home, homeId, logPath, runtimeDirectory, socketPath, startLockPath, userHome,
} from "./where.js";
