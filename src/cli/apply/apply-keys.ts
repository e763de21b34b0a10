import type { Config } from '@oclif/core/interfaces';
import type { NewSecret } from '../../keys/apply/apply.ts';
import { type Catalog, createCatalog } from '../../keys/permissions/catalog.ts';
import { KeysError } from '../../keys/errors.ts';
import { hasChanges, NO_KEYS, type Plan, planChanges } from '../../keys/apply/plan.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import type { AppliedKeys } from '../../keys/apply/apply.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { type DeclarationFile, readDeclarationFile } from './declaration-file.ts';
import { CliError } from '../errors.ts';
import { hostResources } from '../host.ts';
import { countsOf, diffOf, plannedChanges } from './plan-view.ts';
import { validateFileNames, SecretFiles } from './secret-files.ts';

export interface ApplyRequest {
  /** A path, or `-` for stdin. */
  file: string;
  database: string | undefined;
  prune: boolean;
  /** Show what would change, and change nothing. */
  dryRun: boolean;
  /** The folder for the secrets of new keys. */
  secretsDir: string | undefined;
  /** Whether the output is JSON, which holds the secrets that are not in files. */
  json: boolean;
  config: Config;
  print: (json: object, text: string) => void;
  /** The same for what somebody must get. */
  printSecrets: (json: object, text: string) => void;
}

/** Brings the keys to what a file declares, or shows what that would change. @returns the plan */
export async function applyKeys(request: ApplyRequest): Promise<Plan> {
  const { file, database, secretsDir, config, dryRun } = request;
  const resources = await hostResources(config);
  const declaration = await readDeclarationFile(
    file,
    createCatalog(resources),
    secretsDir === undefined ? undefined : validateFileNames,
  );
  const { openKeys, storeExists } = await import('../../open-keys.ts');
  // A store that is not there yet is not made to look into it.
  const keys = dryRun && !(await storeExists({ database })) ? undefined : await openKeys({ database, resources });
  try {
    return keys && !dryRun
      ? await apply(keys, declaration, request)
      : await preview(keys, declaration, createCatalog(resources), request);
  } catch (error) {
    throw declaration.located(error);
  } finally {
    await keys?.close();
  }
}

async function preview(
  keys: OpenKeys | undefined,
  declaration: DeclarationFile,
  catalog: Catalog,
  { prune, print }: ApplyRequest,
): Promise<Plan> {
  const plan = keys
    ? await keys.plan(declaration.keys, { prune }, OPERATOR)
    : await planChanges(NO_KEYS, declaration.keys, { prune, caller: OPERATOR, catalog, now: Date.now() });
  const counts = countsOf(plan);
  const changes = plannedChanges(plan);
  const { created, updated, deleted, unchanged } = counts;
  const total = `Plan: ${created} to create, ${updated} to update, ${deleted} to delete, ${unchanged} unchanged.`;
  print({ dryRun: true, changes, ...counts, keys: [] }, [...diffOf(changes), total].join('\n'));
  return plan;
}

async function apply(
  keys: OpenKeys,
  declaration: DeclarationFile,
  { prune, secretsDir, json, print, printSecrets }: ApplyRequest,
): Promise<Plan> {
  const files = secretsDir === undefined ? undefined : new SecretFiles(secretsDir);
  const deliver = (secrets: readonly NewSecret[]) => {
    if (files) files.write(secrets);
    else if (!json) throw nowhereToGo(secrets.length);
  };
  let applied: AppliedKeys;
  try {
    applied = await keys.apply(declaration.keys, { prune, deliver }, OPERATOR);
  } catch (error) {
    files?.remove();
    throw error;
  }
  try {
    show(applied, files, applied.created.length > 0 && !files ? printSecrets : print);
  } catch (error) {
    throw await outputLost(error as Error, applied, files);
  }
  return applied.plan;
}

function show({ plan, created }: AppliedKeys, files: SecretFiles | undefined, print: ApplyRequest['print']): void {
  const changes = plannedChanges(
    plan,
    created.map(({ key }) => key),
  );
  const counts = countsOf(plan);
  const secrets = created.map(({ secret, key: { name, id } }) =>
    files ? { name, id, file: files.pathOf(name) } : { key: secret, name, id },
  );
  const total = `Applied: ${counts.created} created, ${counts.updated} updated, ${counts.deleted} deleted, ${counts.unchanged} unchanged.`;
  print({ dryRun: false, changes, ...counts, keys: secrets }, [...diffOf(changes), total].join('\n'));
}

/** Keys whose secrets nobody got must not exist: then all is taken back. */
async function outputLost(
  error: Error,
  { plan, created, undo }: AppliedKeys,
  files: SecretFiles | undefined,
): Promise<CliError> {
  const lost = created.length > 0 && !files;
  if (lost) await undo();
  const done = hasChanges(plan) ? 'The changes were made.' : 'There was nothing to change.';
  const outcome = lost ? 'All changes were taken back, because nobody has the new secrets.' : done;
  return new CliError('OUTPUT_FAILED', `${error.message} ${outcome}`, { cause: error });
}

function nowhereToGo(secrets: number): KeysError {
  const what = secrets === 1 ? 'One key is new, and its secret has' : `${secrets} keys are new, and their secrets have`;
  return new KeysError(
    'USAGE',
    `${what} nowhere to go. Pass --secrets-dir <folder> or --json; --dry-run shows the changes.`,
  );
}
