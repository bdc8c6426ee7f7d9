// Reads connection URIs as node's pg does: a JSON list of {uri} on standard input, what was read of each on standard output.
import { text } from 'node:stream/consumers';
import { parse } from 'pg-connection-string';

const read = JSON.parse(await text(process.stdin)).map(({ uri }) => {
  const { user, password, database, host, port } = parse(uri);
  return { user, password, database, host, port: Number(port) };
});
process.stdout.write(JSON.stringify(read));
