import { resolve } from 'node:path';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { CliError } from '../../../../cli/errors.ts';
import { readOptions, ServingCommand, servingFlags } from '../../../../cli/serve/index.ts';
import { additionsTo } from '../../../index.ts';
import { guardFlags, readGuard, upstreamArg } from '../../../guard/cli/guard-flags.ts';
import { readServerUrl, requireEncryption } from '../../../../cli/with-keys.ts';
import { printable } from '../../../../keys/basics/index.ts';
import type { OpenEdge } from '../../cli/edge-service.ts';

const PORT = 4100;
const { workers: _, ...FLAGS } = servingFlags(PORT, additionsTo('apikey:edge'));

export default class Edge extends ServingCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Check keys on a machine that has no key store.';
  static override description =
    'Follows the server at --origin and keeps its keys in memory. Answers proxies at /auth, /introspect, /healthz ' +
    'and /readyz; with <upstream>, or "upstreams" in its svc-api.yaml, it is a guard. The origin confirms a change ' +
    'of a key once every edge has it or has stopped answering: an edge without contact to its origin answers for ' +
    '--max-stale.';
  static override usage = '<%= command.id %> [UPSTREAM] [flags]';
  static override examples = examplesOf([
    ['Check keys for a proxy on this machine', '--origin https://keys.example.org --token-file edge.key'],
    [
      'Guard a service on this machine',
      'http://127.0.0.1:3000 --any-key --origin https://keys.example.org --token-file edge.key',
    ],
  ]);
  /** An edge has no store, not even in a host with one. */
  static override baseFlags: (typeof ServingCommand)['baseFlags'] = {
    ...ServingCommand.baseFlags,
    database: { ...ServingCommand.baseFlags.database, hidden: true },
  };
  static override args = { upstream: upstreamArg };
  static override flags = {
    origin: Flags.string({
      description: 'Address of the server with the keys. Default: from "feed" in svc-api.yaml.',
      helpValue: '<url>',
    }),
    'token-file': Flags.string({
      description: 'File with a key of the origin that has EDGE:READ_ANY. It is read again when it changes.',
      helpValue: '<path>',
      required: true,
    }),
    'max-stale': Flags.string({
      description:
        'How long it answers without contact to the origin, 100ms to 60s. The origin grants at most 2s. Default: 1s.',
      helpValue: '<duration>',
    }),
    name: Flags.string({
      description: 'Name of the edge at the origin. Default: the name of this machine.',
      helpValue: '<name>',
    }),
    ca: Flags.string({ description: 'Certificates of authorities to trust, in PEM.', helpValue: '<path>' }),
    'client-cert': Flags.string({
      description: 'Client certificate for the origin, in PEM.',
      helpValue: '<path>',
    }),
    'client-key': Flags.string({
      description: 'Private key of the certificate of --client-cert, in PEM.',
      helpValue: '<path>',
    }),
    insecure: Flags.boolean({ description: 'Send the key even over plain HTTP to an origin on another machine.' }),
    ...guardFlags,
    ...FLAGS,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Edge);
    const origin = flags.origin === undefined ? undefined : readServerUrl(flags.origin);
    if (origin !== undefined) requireEncryption(origin, flags);
    if ((flags['client-cert'] === undefined) !== (flags['client-key'] === undefined))
      throw new CliError('USAGE', '--client-cert and --client-key need each other. Pass both, or neither.');
    if (flags.name !== undefined && !/^[^\p{C}]{1,100}$/u.test(flags.name))
      throw new CliError(
        'USAGE',
        `--name is "${printable(flags.name)}". Give 1 to 100 characters, without control characters.`,
      );
    const { readMaxStale } = await import('../../index.ts');
    const pem = (path: string | undefined) => path && resolve(path);
    const leaseMs = readMaxStale(flags['max-stale']);
    if (typeof leaseMs === 'object')
      throw new CliError('USAGE', `--max-stale is "${printable(flags['max-stale']!)}". ${leaseMs.refusal}`);
    const asked = {
      origin,
      token: { file: resolve(flags['token-file']) },
      leaseMs,
      name: flags.name,
      ca: pem(flags.ca),
      clientCert: pem(flags['client-cert']),
      clientKey: pem(flags['client-key']),
      log: this.logger,
    };
    const guard = await readGuard(args.upstream, flags);
    const [{ checkEdge, openEdge }, { edgeMetrics }] = await Promise.all([
      import('../../cli/edge-service.ts'),
      import('../../metrics.ts'),
    ]);
    let edge: OpenEdge;
    await this.serve({
      ...readOptions(flags, process.env, PORT),
      database: undefined,
      config: flags.config,
      check: (config, catalog) => checkEdge(guard, config, catalog),
      open: async ({ telemetry, ...opening }) => {
        edge = await openEdge(asked, guard, opening);
        telemetry?.metrics?.add('edge', edgeMetrics(edge.state));
        edge.keys.watchHearing((problem) => {
          const fields = { origin, ...(problem && { reason: problem.message }) };
          if (problem) this.logger.error(fields, 'the lease of the origin has expired: all keys are refused');
          else this.logger.info(fields, 'the origin gives leases again');
        });
        return edge.keys;
      },
      start: (opened, server) => edge.start(opened, server),
    });
  }
}
