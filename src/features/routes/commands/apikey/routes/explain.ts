import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { examplesOf, type FlagsOf } from '../../../../../cli/base-command.ts';
import { CliError } from '../../../../../cli/errors.ts';
import { permissionsFlag } from '../../../../../cli/input/key-flags.ts';
import { warn } from '../../../../../cli/terminal.ts';
import { StoreCommand } from '../../../../../cli/manage/key-command.ts';
import type { DeclaredRoutes, ExplainedRequest } from '../../../cli/routes.ts';
import { assertValid, KeysError } from '../../../../../keys/basics/index.ts';
import {
  type Catalog,
  type CatalogAdditions,
  createCatalog,
  parsePermissions,
  PermissionSet,
} from '../../../../../keys/permissions/index.ts';
import type { RequestParts } from '../../../index.ts';

/** The sender of a request. Without an accepted key, permissions are undefined. */
type Caller = Pick<ExplainedRequest, 'key'> & { permissions: PermissionSet | undefined };

export default class Explain extends StoreCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'Explain which route decides about a request, and why.';
  static override description =
    'Without --key and --permissions, the request has no key. Nothing is sent. Does not check limits or the networks ' +
    'that a key can be used from. Warns about failed expectations.';
  static override examples = examplesOf([
    ['Show what a request requires', 'GET https://grafana.example.org/api/dashboards/7'],
    ['Show what a key lacks for a request', 'POST https://grafana.example.org/api/users --key "CI deploy"'],
    [
      'Try permissions before a key has them',
      'GET https://grafana.example.org/\n--permissions GRAFANA:READ_ANY --json',
    ],
  ]);
  static override args = {
    method: Args.string({ description: 'Method of the request, such as GET.', required: true, ignoreStdin: true }),
    url: Args.string({
      description: 'URL of the request.',
      required: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    key: Flags.string({ description: 'Name of the key that the request has.', helpValue: '<name>' }),
    permissions: permissionsFlag('Permissions of the key that the request has, instead of --key, comma-separated.'),
    preflight: Flags.boolean({ description: 'Explain the CORS preflight that a browser sends before the request.' }),
  };

  private declared: DeclaredRoutes | undefined;

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Explain);
    const [{ explanationView, readDeclaredRoutes }, { createRouter, explain }] = await Promise.all([
      import('../../../cli/routes.ts'),
      import('../../../index.ts'),
    ]);
    const request = await readRequest(args, flags.preflight);
    let unmet: string | undefined;
    const declared = await readDeclaredRoutes(this.config, this.configFile, (text) => void (unmet = text));
    this.declared = declared;
    const { permissions, key } = await this.callerOf(flags, declared);
    const explanation = explain(createRouter(declared.routes), request, permissions);
    const typed = `${args.method} ${args.url}`;
    const { json, text } = await explanationView({ file: declared.file, typed, explanation, key });
    await this.printLines(json, text);
    if (unmet !== undefined)
      await warn(this.terminal, [`Servers refuse this file, because these expectations fail:\n${unmet}`]);
    return json;
  }

  /** Reads them even from a file with failed expectations. */
  protected override async additions(permissions?: readonly string[]): Promise<CatalogAdditions> {
    return this.declared?.additions ?? super.additions(permissions);
  }

  private async callerOf(flags: FlagsOf<typeof Explain>, { additions }: DeclaredRoutes): Promise<Caller> {
    const { key: name, permissions } = flags;
    if (name !== undefined && permissions)
      throw new CliError('USAGE', 'Both --key and --permissions are given. Leave one of them out.');
    if (permissions) return { permissions: readPermissions(permissions, createCatalog(additions)) };
    if (name === undefined) return { permissions: undefined };
    return this.withStore(flags, async (keys) => {
      const key = await this.findStored(keys, name);
      const [chain] = await keys.chainsOf([key]);
      const status = keys.statusOf(chain!);
      return { permissions: status === 'ACTIVE' ? keys.accessOf(chain!) : undefined, key: { key, status } };
    });
  }
}

/** @throws KeysError INPUT_INVALID */
async function readRequest(
  { method, url }: { method: string; url: string },
  isPreflight: boolean,
): Promise<RequestParts> {
  const { parseRequest, preflightOf } = await import('../../../index.ts');
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
