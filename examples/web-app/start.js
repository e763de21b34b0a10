import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Starts everything on this machine, for a demonstration. In production, each part is a service of its own. */
const folder = import.meta.dirname;
const svcApi = installedProgram();
const database = join(folder, 'data', 'keys.sqlite');
// Without variables for another store or server.
const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_API_') && name !== 'PORT');
const env = {
  ...Object.fromEntries(inherited),
  SVC_API_DATABASE: database,
  SVC_API_CONFIG: join(folder, 'svc-api.yaml'),
  LOG_LEVEL: 'error',
};

function installedProgram() {
  try {
    return fileURLToPath(new URL('bin/run.js', import.meta.resolve('svc-api/package.json')));
  } catch {
    console.error('Error: the packages of this folder are not installed. Run: npm install');
    return process.exit(1);
  }
}

const children = [];
let isStopping = false;
/** Stops only the processes that were started here. */
function stop(code) {
  if (isStopping) return;
  isStopping = true;
  process.exitCode = code;
  for (const child of children) child.kill();
}
// SIGHUP is sent when the terminal is closed, but svc-api does not end on it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(0));

/** Starts a program. @returns its address. @throws Error if it ends before it prints one; it has printed the reason */
async function start(args, more) {
  if (isStopping) throw new Error('Stopped.');
  // Detached, since Ctrl-C would reach all at once: they are stopped here, one by one.
  const options = { detached: true, env: { ...env, ...more }, stdio: ['ignore', 'pipe', 'inherit'] };
  const child = spawn(process.execPath, args, options);
  children.push(child);
  child.once('exit', () => stop(1));
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit')]);
  const [, url] = /^Listening on (\S+)$/.exec(line) ?? [];
  if (url === undefined) throw new Error(`${args.join(' ')} has ended.`);
  return url;
}

try {
  mkdirSync(join(folder, 'data'), { recursive: true, mode: 0o700 });
  const server = await start([svcApi, 'serve', '--port', '0']);
  const service = await start([join(folder, 'service.js')]);
  const guard = await start([svcApi, 'guard', service, '--port', '0']);
  const port = process.env.PORT ?? '3000';
  const app = await start([join(folder, 'app.js')], { PORT: port, SVC_API_URL: server, NOTES_URL: guard });
  // Comes last: if the port is in use, this example may be running already, and its key must stay.
  const permissions = 'NOTES:READ_ANY,NOTES:CREATE_ANY,API_KEY:CREATE_OWN';
  const create = [svcApi, 'apikey', 'create', 'You', '--permissions', permissions, '--overwrite', '--no-input'];
  const { stdout: key } = await promisify(execFile)(process.execPath, create, { env });
  console.log(`Open ${app} and connect. svc-api asks for your own key, which is new with each start:

  ${key}
svc-api listens on ${server}, the guard on ${guard}, and the keys are in ${database}. Ctrl-C ends all.`);
} catch (error) {
  if (!isStopping) console.error(`Error: ${error.message}`);
  stop(1);
}
