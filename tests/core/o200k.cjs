// Reads a JSON list of texts and writes how many o200k tokens each has.
const { encode } = require(process.argv[2]);
const texts = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map((text) => encode(text, { disallowedSpecial: new Set() }).length)));
