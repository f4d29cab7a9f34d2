// What a TypeScript program may write, and what it may not; only compiled, never run.
import { memory, connect, Refused, MemdError, socketPath, SocketPathTooLong } from "../../clients/node/index.js";
const saved = await memory.save("x", { type: "feedback", expect: null, mood: "firm" });
const left: number | null | undefined = saved.saves_left;
// @ts-expect-error a type that is none
await memory.save("x", { type: "fact" });
const memd = await connect({ timeout: null });
for await (const event of await memd.activity({ cwd: "/" })) { const line: string = event.line; console.log(line, left); }
try { await memory.start({ saveCap: null, onEntry: (entry) => entry.data.hash }); } catch (error) {
  if (error instanceof Refused) console.log(error.data.field, error.code);
  if (error instanceof SocketPathTooLong) console.log(error.limit, socketPath());
  if (error instanceof MemdError) console.log(error.kind);
}
