import './jsx.ts';
import { createApp, listen, OPERATOR, openKeys, openLog } from '../src/index.ts';
import { listenForStop } from '../src/cli/serve/service-manager.ts';
import { isKeysError } from '../src/keys/basics/errors.ts';

/** `npm start`: serves the default store, and prints a new key and a request to paste. Each start replaces the key. */
const keys = await openKeys();
const app = await createApp({ keys, console: true, log: await openLog('warn') });
const server = await listen({
  app,
  host: process.env['SVC_API_HOST'] || '127.0.0.1',
  port: Number(process.env['SVC_API_PORT'] || 4000),
}).catch((error: unknown) => {
  if (!isKeysError(error)) throw error;
  // The message names flags of `serve`.
  const message = error.message.replaceAll(/--(host|port)/g, (_, name: string) => `SVC_API_${name.toUpperCase()}`);
  process.stderr.write(`Error: ${message}\n`);
  process.exit(1);
});
const newKey = { name: 'Quick start', roles: ['ADMIN'], expiresIn: '1h', overwrite: true };
const { key: secret } = await keys.create(newKey, { actor: OPERATOR });

process.stdout.write(`Listening on ${server.url}, with the keys in ${keys.location}

This key can do everything, so that you can try everything. It expires in an hour.

  ${secret}

Sign in with it at ${server.url}/console, or send it a request:

  echo 'Authorization: Bearer ${secret}' |
    curl ${server.url}/graphql -w '\\n' -H @- -H 'Content-Type: application/json' \\
    -d '{"query":"{ me { name roles } online info { version } }"}'

Delete the key when you are done: npx svc-api apikey delete "Quick start"

`);

const stop = listenForStop();
stop.serving();
await stop.received;
await server.stop();
await keys.close();
