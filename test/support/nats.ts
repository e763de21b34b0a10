import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { accepts, freePort } from './port.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';

/** A nats-server that can be killed and restarted on the same port. */
export interface NatsServer {
  /** Such as `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Kills it without notice to its clients. */
  kill(): Promise<void>;
  /** Restarts it. @param more settings in addition to the first ones */
  start(more?: string): Promise<void>;
  /** Removes its data. It must be stopped. */
  forget(): void;
}

const started = new Set<NatsServer>();

/** The PATH in which Debian's package has the program. */
const ENV = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };

/**
 * Starts a nats-server.
 * @param settings in the syntax of its configuration file
 * @param jetStream settings of JetStream; `false` for a leaf node, which uses the JetStream of its hub
 */
export async function startNats(settings = '', jetStream: string | false = ''): Promise<NatsServer> {
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
        [
          `host: 127.0.0.1\nport: ${port}`,
          jetStream === false ? '' : `jetstream { store_dir: "${folder}/store"\n${jetStream} }`,
          settings,
          more,
        ].join('\n'),
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

/** Stops all servers that tests have started. */
export async function stopNats(): Promise<void> {
  for (const server of started) await server.kill();
  started.clear();
}

/** Settings of a server that accepts only one account, with credentials as `nsc` makes them. */
export function natsAccounts(): { settings: string; accepted: string; refused: string } {
  const [operator, system, account, other] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createAccount(),
  ];
  const limits = {
    ...Object.fromEntries(['subs', 'data', 'payload', 'imports', 'exports', 'conn', 'leaf'].map((name) => [name, -1])),
    ...Object.fromEntries(['mem_storage', 'disk_storage', 'streams', 'consumer'].map((name) => [name, -1])),
    wildcards: true,
  };
  const accountOf = (key: nkeys.KeyPair, more: object) => tokenOf(operator, key, { type: 'account', limits: more });
  const { mem_storage: _, disk_storage: __, ...plain } = limits as Record<string, unknown>;
  const preload = [
    `${system.getPublicKey()}: ${accountOf(system, plain)}`,
    `${account.getPublicKey()}: ${accountOf(account, limits)}`,
  ];
  const credentials = (issuer: nkeys.KeyPair) => {
    const user = nkeys.createUser();
    const token = tokenOf(issuer, user, { type: 'user', subs: -1, data: -1, payload: -1 });
    const seed = new TextDecoder().decode(user.getSeed());
    return (
      `-----BEGIN NATS USER JWT-----\n${token}\n------END NATS USER JWT------\n\n` +
      `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`
    );
  };
  return {
    settings: [
      `operator: ${tokenOf(operator, operator, { type: 'operator', system_account: system.getPublicKey() })}`,
      `system_account: ${system.getPublicKey()}`,
      `resolver: MEMORY\nresolver_preload: { ${preload.join('\n')} }`,
    ].join('\n'),
    accepted: credentials(account),
    refused: credentials(other),
  };
}

/** A signed NATS token: the issuer vouches for the subject. */
function tokenOf(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, nats: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1000),
    iss: issuer.getPublicKey(),
    name: 'test',
    sub: subject.getPublicKey(),
    nats: { ...nats, version: 2 },
  };
  const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url')}`;
}
