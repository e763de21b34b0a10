import { isAbsolute } from 'node:path';
import { unsupportedNode } from '../../../../bin/node-version.js';
import { readOptions } from '../../../cli/serve/index.ts';
import { formatCount } from '../../../cli/output.ts';
import type { CertificateFiles } from '../../../http/certificate.ts';
import { printable } from '../../../keys/basics/index.ts';
import type { Finding } from '../inspection/finding.ts';

const [STATUS_WIDTH, CHECK_WIDTH] = ['failure'.length + 2, 'ENVIRONMENT'.length + 2];

/** Findings as lines, each with its remedy below. */
export function linesOf(findings: readonly Finding[]): string[] {
  const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length;
  const [failures, warnings] = [count('failure'), count('warning')];
  // Names of plugins' checks can be longer than ours.
  const checkWidth = Math.max(CHECK_WIDTH, ...findings.map(({ check }) => check.length + 2));
  const indent = ' '.repeat(STATUS_WIDTH + checkWidth);
  return [
    ...findings.flatMap(({ status, check, message, remedy, items = [] }) => [
      `${status.padEnd(STATUS_WIDTH)}${check.padEnd(checkWidth)}${message.replaceAll('\n', ' ')}`,
      ...(remedy === null ? [] : [`${indent}${remedy.replaceAll('\n', ' ')}`]),
      ...items.map(({ text }) => `${indent}${printable(text, 300)}`),
    ]),
    failures + warnings === 0
      ? 'No problems found.'
      : `${formatCount(failures, 'failure', 'failures')}, ${formatCount(warnings, 'warning', 'warnings')}.`,
  ];
}

const PORT = 4000;

/** Checks the version of Node. */
export function inspectNode(): Finding {
  const unsupported = unsupportedNode();
  return unsupported === undefined
    ? { check: 'NODE', status: 'ok', message: `Node ${process.versions.node} is supported.`, remedy: null }
    : { check: 'NODE', status: 'failure', message: `${unsupported}.`, remedy: 'Install one of those versions.' };
}

/** Checks environment variables for contradictions, and for ones without effect. */
export function inspectEnvironment(
  env: NodeJS.ProcessEnv,
  readCertificate: (files: CertificateFiles) => unknown,
): Finding[] {
  const findings = [...inspectPlace(env), ...inspectFolders(env), ...inspectServing(env, readCertificate)];
  if (findings.length > 0) return findings;
  return [{ check: 'ENVIRONMENT', status: 'ok', message: 'No variable contradicts another.', remedy: null }];
}

function inspectPlace(env: NodeJS.ProcessEnv): Finding[] {
  const { SVC_API_SERVER: server, SVC_API_DATABASE: database, SVC_API_KEY: key } = env;
  if (server && database)
    return [
      failure(
        'SVC_API_SERVER and SVC_API_DATABASE are both set: it is not clear whose keys commands mean.',
        'Unset one of them.',
      ),
    ];
  if (server)
    return [
      warning(
        `SVC_API_SERVER is "${printable(server, 200)}": commands work on that server, and not on this store.`,
        'Unset it to work on the store.',
      ),
    ];
  if (key) return [warning('SVC_API_KEY is set, and SVC_API_SERVER is not: the key is used nowhere.', 'Unset it.')];
  return [];
}

function inspectFolders(env: NodeJS.ProcessEnv): Finding[] {
  return ['XDG_DATA_HOME', 'XDG_CONFIG_HOME'].flatMap((name) => {
    const folder = env[name];
    if (!folder || isAbsolute(folder)) return [];
    return [warning(`${name} is "${printable(folder, 200)}", which is relative, and is ignored.`, 'Make it absolute.')];
  });
}

/** Finds problems that would keep a server from starting. */
function inspectServing(env: NodeJS.ProcessEnv, readCertificate: (files: CertificateFiles) => unknown): Finding[] {
  try {
    const { tls } = readOptions({}, env, PORT);
    if (tls) readCertificate(tls);
    return [];
  } catch (error) {
    return [failure((error as Error).message, 'Correct the variable or what it names, or unset it.')];
  }
}

function failure(message: string, remedy: string): Finding {
  return { check: 'ENVIRONMENT', status: 'failure', message, remedy };
}

function warning(message: string, remedy: string): Finding {
  return { check: 'ENVIRONMENT', status: 'warning', message, remedy };
}
