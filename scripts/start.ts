import './jsx.ts';
import { createApp, listen, OPERATOR, openKeys, openLog } from '../src/index.ts';
import { listenForStop } from '../src/cli/serve/service-manager.ts';
import { isKeysError } from '../src/keys/basics/errors.ts';

/** `npm start`: serves the default store, and prints a new key and a request to paste. */
const keys = await openKeys();
const app = await createApp({ keys, console: true, log: await openLog('warn') });
const server = await listen({
  app,
  host: process.env['SVC_API_HOST'] || '127.0.0.1',
  port: Number(process.env['SVC_API_PORT'] || 4000),
}).catch((error: unknown) => {
  if (!isKeysError(error)) throw error;
  // It names the flags of `serve`.
  const message = error.message.replaceAll(/--(host|port)/g, (_, name: string) => `SVC_API_${name.toUpperCase()}`);
  process.stderr.write(`Error: ${message}\n`);
  process.exit(1);
});
const newKey = { name: 'Quick start', roles: ['VIEWER'], overwrite: true };
const { key: secret } = await keys.create(newKey, { actor: OPERATOR });

process.stdout.write(`Listening on ${server.url}, with the keys in ${keys.location}

This key reads everything but credentials. Each start replaces it.

  echo 'Authorization: Bearer ${secret}' |
    curl ${server.url}/graphql -H @- -H 'Content-Type: application/json' \\
    -d '{"query":"{ me { name roles } online info { version } }"}'

With it, sign in at ${server.url}/console, too.

`);

const stop = listenForStop();
stop.serving();
await stop.received;
await server.stop();
await keys.close();
