// Calls a tool again and again over stdio, and prints how many of the calls saw each of its progress reports.
// usage: progress.mjs SDK ERA CALLS TOGETHER BUSY_MS COMMAND ARGUMENT...
const [sdk, era, calls, together, busy, command, ...args] = process.argv.slice(2);
const [{ Client }, { StdioClientTransport }] =
    sdk === '1'
        ? [await import('@modelcontextprotocol/sdk/client/index.js'), await import('@modelcontextprotocol/sdk/client/stdio.js')]
        : [await import('@modelcontextprotocol/client'), await import('@modelcontextprotocol/client/stdio')];

const options = era === 'legacy' ? {} : { versionNegotiation: { mode: { pin: era } } };
const client = new Client({ name: 'progress', version: '1' }, options);
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));

// A client that is busy reads what came meanwhile in one piece.
const block = () => {
    const end = performance.now() + Number(busy);
    while (performance.now() < end);
};
const timer = Number(busy) ? setInterval(block, 5) : undefined;

const seen = {};
const one = async () => {
    const onprogress = ({ progress }) => {
        seen[progress] = (seen[progress] ?? 0) + 1;
    };
    const params = { name: 'steps', arguments: {} };
    await (sdk === '1' ? client.callTool(params, undefined, { onprogress }) : client.callTool(params, { onprogress }));
};
for (let done = 0; done < Number(calls); done += Number(together)) {
    await Promise.all(Array.from({ length: Number(together) }, one));
}
clearInterval(timer);
await client.close();
console.log(JSON.stringify(seen));
