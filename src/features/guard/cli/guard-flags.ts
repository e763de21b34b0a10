import { resolve } from 'node:path';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import { printable } from '../../../keys/basics/index.ts';
import type { SentCredential, Upstream } from '../../routes/index.ts';
import type { AskedGuard } from './guard-service.ts';
import { CliError } from '../../../cli/errors.ts';
import { exclusiveFlags, permissionsFlag } from '../../../cli/input/key-flags.ts';
import { readNumber } from '../../../cli/serve/index.ts';

const TIMEOUT_S = 60;

/** The service that a command guards. */
export const upstreamArg = Args.string({
  description:
    'Address of the service: http://127.0.0.1:3000, https://app.internal, http+unix:///run/app.sock. Routes can name ' +
    'another one.',
  ignoreStdin: true,
});

/** Flags for the requirements of a guard and for passing requests on. */
export const guardFlags = {
  permission: permissionsFlag('Permissions that a key needs, all of them: comma-separated, or repeated.'),
  resource: Flags.string({
    description:
      'Resource that a key needs READ_ANY, CREATE_ANY, UPDATE_ANY or DELETE_ANY on, depending on the method.',
    helpValue: '<resource>',
  }),
  methods: Flags.string({
    description: 'Allow every method with a --permission to read, which otherwise allows only GET, HEAD and OPTIONS.',
    options: ['any'],
    helpValue: 'any',
  }),
  'any-key': Flags.boolean({ description: 'Accept any valid key.' }),
  'forward-credential': Flags.boolean({ description: 'Forward the key to the service.' }),
  'rewrite-host': Flags.boolean({
    description: "Send the service its own address as the Host instead of the client's.",
  }),
  'send-header': Flags.string({
    description: 'Header to send to the service with the content of a file. Replaces what callers send.',
    helpValue: '<name>=@<file>',
    multiple: true,
  }),
  'pass-header': Flags.string({
    description: 'Identity header to pass on from a proxy in "trust". Other identity headers are removed.',
    helpValue: '<name>',
    multiple: true,
  }),
  timeout: Flags.string({
    description: `Seconds for the service to start its answer. Default: ${TIMEOUT_S}.`,
    helpValue: '<seconds>',
  }),
  'health-path': Flags.string({
    description: 'Path of a health check of the guard itself, which needs no key.',
    helpValue: '<path>',
  }),
};

/** Their values. */
type GuardFlags = Interfaces.InferredFlags<typeof guardFlags>;

/** @throws CliError USAGE */
export async function readGuard(address: string | undefined, flags: GuardFlags): Promise<AskedGuard> {
  const { permission: permissions, resource, methods, 'any-key': anyKey } = flags;
  if (permissions && anyKey) throw exclusiveFlags('--permission', '--any-key');
  if (resource !== undefined && anyKey) throw exclusiveFlags('--resource', '--any-key');
  if (resource !== undefined && permissions) throw exclusiveFlags('--resource', '--permission');
  if (methods !== undefined && !permissions)
    throw new CliError('USAGE', '--methods requires --permission. Pass both, or leave it out.');
  return {
    permissions,
    anyKey,
    resource,
    anyMethod: methods === 'any',
    upstream: await readUpstream(address, flags),
    forwardCredential: flags['forward-credential'],
    timeoutMs: (readNumber(flags.timeout, '--timeout', 3600) ?? TIMEOUT_S) * 1000,
    healthPath: readHealthPath(flags['health-path']),
    flag: (Object.keys(guardFlags) as (keyof GuardFlags)[]).find((name) => (flags[name] ?? false) !== false),
  };
}

function readHealthPath(path: string | undefined): string | undefined {
  if (path === undefined || /^\/[\w./~-]*$/.test(path)) return path;
  throw new CliError('USAGE', `--health-path is "${printable(path)}". Give a path, such as /guard/health.`);
}

/** Reads the upstream from the flags, with its own credentials. */
async function readUpstream(
  address: string | undefined,
  { 'rewrite-host': rewriteHost, 'send-header': headers = [], 'pass-header': passed = [] }: GuardFlags,
): Promise<Upstream | undefined> {
  if (address === undefined) {
    const [flag, instead] =
      [
        ['--rewrite-host', 'rewriteHost', rewriteHost] as const,
        ['--send-header', 'send', headers.length > 0] as const,
        ['--pass-header', 'passHeaders', passed.length > 0] as const,
      ].find(([, , isGiven]) => isGiven) ?? [];
    if (flag === undefined) return undefined;
    throw new CliError(
      'USAGE',
      `${flag} requires an upstream argument. For others, write "${instead}" in "upstreams" of svc-api.yaml.`,
    );
  }
  const { parseUpstream, problemOfPassedHeader, problemOfSentHeader } = await import('../../routes/index.ts');
  const parsed = parseUpstream(address);
  if ('refusal' in parsed) throw new CliError('USAGE', parsed.refusal);
  const send = headers.map((text): SentCredential => {
    const [, name, file] = /^([^=]*)=@(.+)$/s.exec(text) ?? [];
    // The text may be the secret itself, so do not print it.
    if (name === undefined || file === undefined)
      throw new CliError('USAGE', '--send-header must be a name and a file, such as X-Api-Key=@/run/secrets/app.');
    const problem = problemOfSentHeader(name);
    if (problem !== undefined)
      throw new CliError('USAGE', `--send-header cannot send "${printable(name)}": it ${problem}.`);
    return { in: 'header', name, file: resolve(file) };
  });
  for (const name of passed) {
    const problem = problemOfPassedHeader(name);
    if (problem !== undefined)
      throw new CliError('USAGE', `--pass-header cannot pass "${printable(name)}" on: it ${problem}.`);
  }
  const passHeaders = passed.map((name) => name.toLowerCase());
  return { address: parsed.value, send, rewriteHost, passHeaders };
}
