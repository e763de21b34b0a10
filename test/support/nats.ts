import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepts, freePort } from './port.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';

/** A nats-server, which can be killed and started again at its port. */
export interface NatsServer {
  /** As `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends it, and its connections, without a word. */
  kill(): Promise<void>;
  /** Starts it again. @param more settings beside those that it began with */
  start(more?: string): Promise<void>;
  /** Removes what it has stored, while it does not run. */
  forget(): void;
}

const started = new Set<NatsServer>();

/** Where Debian's package is. */
const ENV = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };

/** Starts a nats-server with JetStream. @param settings of its own, as its file of configuration has them */
export async function startNats(settings = '', jetStream = ''): Promise<NatsServer> {
  const [folder, port] = [tempFolder(), await freePort()];
  chmodSync(folder, 0o700);
  const file = join(folder, 'nats.conf');
  let child: ReturnType<typeof spawn> | undefined;
  const server: NatsServer = {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return child!.pid!;
    },
    async kill() {
      if (!child) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      child = undefined;
    },
    async start(more = '') {
      writeFileSync(
        file,
        `host: 127.0.0.1\nport: ${port}\njetstream { store_dir: "${folder}/store"\n${jetStream} }\n${settings}\n${more}\n`,
      );
      child = spawn('nats-server', ['-c', file], { env: ENV, stdio: ['ignore', 'ignore', 'ignore'] });
      await once(child, 'spawn');
      await until(() => accepts(port));
    },
    forget() {
      rmSync(join(folder, 'store'), { recursive: true, force: true });
    },
  };
  await server.start();
  started.add(server);
  return server;
}

/** Ends all that were started. */
export async function stopNats(): Promise<void> {
  for (const server of started) await server.kill();
  started.clear();
}
