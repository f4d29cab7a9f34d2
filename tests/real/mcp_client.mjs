// The official client of the Model Context Protocol for Node, at work with `memctl mcp`: a line of JSON for each answer.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, python] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { ResourceListChangedNotificationSchema } = await load("types.js");

const connected = async () => {
  const client = new Client({ name: "node", version: "1.0.0" });
  await client.connect(
    new StdioClientTransport({ command: python, args: ["-m", "memd.memctl", "mcp"], env: process.env }),
  );
  return client;
};
const tell = (what) => console.log(JSON.stringify(what));
const call = async (client, name, args) => {
  const answer = await client.callTool({ name, arguments: args });
  return answer.isError ? { error: answer.content[0].text } : answer.structuredContent;
};

const [one, two] = await Promise.all([connected(), connected()]);
const changed = new Promise((resolve) => one.setNotificationHandler(ResourceListChangedNotificationSchema, resolve));
tell({ tools: (await one.listTools()).tools.map((tool) => [tool.name, Boolean(tool.outputSchema), tool.annotations]) });
tell(await call(one, "memory_save", { markdown: "Use -k smoke.", type: "feedback", description: "Forge tests" }));
await changed;
tell(await call(two, "memory_search", { query: "forge" }));
tell(await call(two, "memory_read", { name: "forge-tests" }));
tell(await call(two, "memory_save", { markdown: "x", type: "diary", description: "d" }));
tell((await two.listResources()).resources.map((resource) => resource.uri));
tell((await two.readResource({ uri: "memory://repo/forge-tests" })).contents[0].text);
tell((await one.listPrompts()).prompts.map((prompt) => prompt.name));
tell((await one.getPrompt({ name: "remember", arguments: { text: "Tests run in CI only" } })).messages[0].role);
tell({ waits: true });
await new Promise((resolve) => process.stdin.once("data", resolve));
tell(await call(one, "memory_list", {}));
tell(await call(two, "memory_forget", { name: "forge-tests" }));
await Promise.all([one.close(), two.close()]);
process.exit(0);
