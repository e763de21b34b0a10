import type { Config } from '@oclif/core/interfaces';
import { type Issue, assertValid } from '../../keys/errors.ts';
import { readExpiry } from '../../keys/key/expiry.ts';
import { normalizeName } from '../../keys/key/name.ts';
import { PermissionSet } from '../../keys/permissions/permission-set.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import type { CreatedKey } from '../../keys/service.ts';
import { listOf } from '../../keys/text.ts';
import { validateChange, validateNewKey, readGrants } from '../../keys/key/validation.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { CliError } from '../errors.ts';
import { catalogFor, hostResources } from '../host.ts';
import type { KeyRequest } from '../prompts/new-key.ts';
import type { Terminal } from '../terminal.ts';
import { formatTime } from '../../keys/time.ts';

export interface CreateCommandOptions {
  request: KeyRequest;
  database: string | undefined;
  config: Config;
  terminal: Terminal;
  /** Whether missing values may be asked for. */
  interactive: boolean;
  /** Writes the secret out. When it throws, the key is taken back. */
  show: (created: CreatedKey) => void;
  /** Given, nothing is created: it writes out what the key would be. */
  preview?: (json: object, text: string) => void;
}

/** Creates a key from flags, and from answers where values are missing and somebody can be asked. */
export async function runCreate({
  request,
  database,
  config,
  terminal,
  interactive,
  show,
  preview,
}: CreateCommandOptions): Promise<void> {
  const { openKeys } = await import('../../open-keys.ts');
  const complete = request.name !== undefined && (request.roles ?? request.permissions) !== undefined;
  const prompting = interactive && !complete;
  const catalog = await catalogFor(request.permissions ?? [], config);
  const now = Date.now();
  assertValid(
    prompting
      ? validateChange(request, catalog, now)
      : [...missingName(request), ...validateNewKey(request, catalog, now)],
  );

  const resources = prompting ? await hostResources(config) : catalog.resources;
  const keys = await openKeys({ database, resources });
  try {
    const answered = prompting ? await ask(request, keys) : request;
    if (preview) return showPreview(answered, keys, preview);
    const created = await keys.create({ ...answered, name: answered.name ?? '' }, OPERATOR);
    await deliver(created, show);
    terminal.note(describe(created));
  } finally {
    await keys.close();
  }
}

async function ask(request: KeyRequest, keys: OpenKeys): Promise<KeyRequest> {
  const { askForKey } = await import('../prompts/new-key.ts');
  return askForKey(request, keys.catalog, async (name) => (await keys.findByName(name, OPERATOR)) !== undefined);
}

/** What a key would be, and all that it would be allowed. */
function showPreview(
  request: KeyRequest,
  { catalog }: OpenKeys,
  preview: NonNullable<CreateCommandOptions['preview']>,
): void {
  const grants = readGrants(request, catalog);
  const end = readExpiry(request, Date.now());
  const expiresAt = typeof end === 'number' ? formatTime(end) : null;
  const effectivePermissions = PermissionSet.of(catalog, grants).permissions();
  preview(
    { name: normalizeName(request.name ?? ''), ...grants, expiresAt, effectivePermissions },
    effectivePermissions.join('\n'),
  );
}

/** A key whose secret nobody got must not exist: it could only be found by who should not have it. */
async function deliver(created: CreatedKey, show: CreateCommandOptions['show']): Promise<void> {
  try {
    show(created);
  } catch (error) {
    await created.undo();
    throw new CliError(
      'OUTPUT_FAILED',
      `${(error as Error).message} The key was removed again, because nobody has its secret.`,
      {
        cause: error,
      },
    );
  }
}

function missingName({ name }: KeyRequest): Issue[] {
  if (name !== undefined) return [];
  return [
    {
      code: 'USAGE',
      message: 'The name is missing. Pass --name <name>; it can only be asked for on a terminal, without --json.',
    },
  ];
}

function describe({ key, replaced }: CreatedKey): string {
  const grants = [
    key.roles.length > 0 ? `roles ${listOf(key.roles)}` : '',
    key.permissions.length > 0 ? `permissions ${listOf(key.permissions)}` : '',
  ];
  const verb = replaced.length > 0 ? 'Replaced' : 'Created';
  const lost = replaced.length > 1 ? ` ${replaced.length - 1} keys that it had created were deleted.` : '';
  return `${verb} API key "${key.name}" (${prefixOf(key.publicId)}) with ${grants.filter(Boolean).join(' and ')}.${lost} Its secret is not shown again.`;
}
