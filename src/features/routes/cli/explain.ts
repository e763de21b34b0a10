import { CliError } from '../../../cli/errors.ts';
import { warn } from '../../../cli/terminal.ts';
import type { RunningCommand } from '../../../feature.ts';
import { assertValid, KeysError } from '../../../keys/basics/index.ts';
import { type Catalog, createCatalog, parsePermissions, PermissionSet } from '../../../keys/permissions/index.ts';
import { explain } from '../decide.ts';
import { parseRequest, preflightOf, type RequestParts } from '../request.ts';
import { createRouter } from '../router.ts';
import { type DeclaredRoutes, type ExplainedRequest, explanationView, declaredRoutes } from './routes.ts';

/** The sender of a request. Without an accepted key, permissions are undefined. */
type Caller = Pick<ExplainedRequest, 'key'> & { permissions: PermissionSet | undefined };

interface ExplainFlags {
  key?: string;
  permissions?: string[];
  preflight?: boolean;
}

/** Explains which route decides about a request, also by a file with failed expectations. */
export async function runExplain(command: RunningCommand): Promise<object> {
  const [method, url] = command.args as [string, string];
  const flags = command.flags as ExplainFlags;
  const request = readRequest(method, url, flags.preflight ?? false);
  let unmet: string | undefined;
  const declared = declaredRoutes(await command.loadConfig((text) => void (unmet = text)));
  const { permissions, key } = await callerOf(command, flags, declared);
  const explanation = explain(createRouter(declared.routes), request, permissions);
  const { json, text } = await explanationView({ file: declared.file, typed: `${method} ${url}`, explanation, key });
  await command.printLines(json, text);
  if (unmet !== undefined)
    await warn(command.terminal, [`Servers refuse this file, because these expectations fail:\n${unmet}`]);
  return json;
}

async function callerOf(
  command: RunningCommand,
  { key: name, permissions }: ExplainFlags,
  { additions }: DeclaredRoutes,
): Promise<Caller> {
  if (name !== undefined && permissions)
    throw new CliError('USAGE', 'Both --key and --permissions are given. Leave one of them out.');
  if (permissions) return { permissions: readPermissions(permissions, createCatalog(additions)) };
  if (name === undefined) return { permissions: undefined };
  return command.withStored(name, additions, async (keys, key) => {
    const [chain] = await keys.chainsOf([key]);
    const status = keys.statusOf(chain!);
    return { permissions: status === 'ACTIVE' ? keys.accessOf(chain!) : undefined, key: { key, status } };
  });
}

/** @throws KeysError INPUT_INVALID */
function readRequest(method: string, url: string, isPreflight: boolean): RequestParts {
  const request = parseRequest(method, url);
  if ('refusal' in request) throw new KeysError('INPUT_INVALID', request.refusal);
  return isPreflight ? preflightOf(request.value) : request.value;
}

/** @throws ValidationError PERMISSION_INVALID */
function readPermissions(texts: readonly string[], catalog: Catalog): PermissionSet {
  const { values, issues } = parsePermissions(texts, catalog);
  assertValid(issues);
  return new PermissionSet(values);
}
