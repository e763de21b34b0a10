import type { AppliedKeys } from '../../keys/apply/apply.ts';
import { hasChanges, type Plan } from '../../keys/apply/plan.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import type { SecretDelivery } from '../../keys/changes/delivery.ts';
import { KeysError } from '../../keys/errors.ts';
import { type CatalogAdditions, createCatalog } from '../../keys/permissions/catalog.ts';
import type { OpenKeys } from '../../open-keys.ts';
import { deliverSecrets } from '../deliver-secrets.ts';
import { CliError } from '../errors.ts';
import { type DeclarationFile, readDeclarationFile } from './declaration-file.ts';
import { countsOf, diffOf, plannedChanges } from './plan-view.ts';
import { tidyLeftovers } from './leftover-files.ts';
import { SecretFiles, validateFileNames } from './secret-files.ts';
import { openForCommand } from '../with-keys.ts';

const REVERTED = 'All changes were reverted, because nobody has the new secrets.';

export interface ApplyRequest {
  /** A path, or `-` for stdin. */
  file: string;
  database: string | undefined;
  prune: boolean;
  /** Take over declared keys that another key created. */
  adopt: boolean;
  /** Show what would change, and change nothing. */
  dryRun: boolean;
  /** The folder for the secrets of new keys. */
  secretsDir: string | undefined;
  /** Whether the output is JSON, which holds the secrets that are not in files. */
  json: boolean;
  /** What can be granted beside what is built in. */
  additions: CatalogAdditions;
  print: (json: object, text: string) => Promise<void>;
  /** The same for what somebody must get. */
  printSecrets: (json: object, text: string) => Promise<void>;
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/** Brings the keys to what a file declares, or shows what that would change. @returns the plan */
export async function applyKeys(request: ApplyRequest): Promise<Plan> {
  const { file, database, secretsDir, additions, dryRun } = request;
  const validate = secretsDir === undefined ? undefined : validateFileNames;
  const declaration = await readDeclarationFile(file, createCatalog(additions), validate);
  const keys = await openForCommand({ database, ...additions, ifMissing: dryRun ? 'empty' : 'create' });
  try {
    return await (dryRun ? preview : apply)(keys, declaration, request);
  } catch (error) {
    throw declaration.located(error);
  } finally {
    await keys.close();
  }
}

async function preview(
  keys: OpenKeys,
  declaration: DeclarationFile,
  { prune, adopt, print }: ApplyRequest,
): Promise<Plan> {
  const plan = await keys.plan(declaration.keys, { prune, adopt }, OPERATOR);
  const counts = countsOf(plan);
  const changes = plannedChanges(plan);
  const { created, updated, deleted, unchanged } = counts;
  const total = `Plan: ${created} to create, ${updated} to update, ${deleted} to delete, ${unchanged} unchanged.`;
  await print({ dryRun: true, changes, ...counts, keys: [] }, [...diffOf(changes), total].join('\n'));
  return plan;
}

async function apply(keys: OpenKeys, declaration: DeclarationFile, request: ApplyRequest): Promise<Plan> {
  const { prune, adopt, secretsDir, print, note } = request;
  let files: SecretFiles | undefined;
  if (secretsDir !== undefined) {
    const nameOf = (secret: string) => nameOfWorking(secret, keys);
    for (const line of await tidyLeftovers({ folder: secretsDir, location: keys.location, nameOf })) await note(line);
    files = new SecretFiles(secretsDir, keys.location);
  }
  const delivery = files ? deliveryInFiles(files) : deliveryInJson(request);
  try {
    const applied = await deliverSecrets(delivery, REVERTED, (safe) =>
      keys.apply(declaration.keys, { prune, adopt, delivery: safe }, OPERATOR),
    );
    if (files || applied.created.length === 0) await showOrSay(applied, files, print);
    return applied.plan;
  } catch (error) {
    files?.remove();
    throw error;
  }
}

/** The name of a secret's key, unless a newer secret replaced it: one that is expired or disabled may come back. */
async function nameOfWorking(secret: string, keys: OpenKeys): Promise<string | undefined> {
  const found = await keys.identify(secret, OPERATOR);
  return 'unknown' in found || found.status === 'ROTATED' ? undefined : found.key.name;
}

function deliveryInFiles(files: SecretFiles): SecretDelivery<AppliedKeys> {
  return { prepare: ({ created }) => files.write(created), deliver: () => files.publish() };
}

/** Secrets on stdout, which must be JSON. The text has no place for them. */
function deliveryInJson({ json, printSecrets }: ApplyRequest): SecretDelivery<AppliedKeys> {
  return {
    prepare: ({ created }) => {
      if (created.length > 0 && !json) throw nowhereToGo(created.length);
    },
    deliver: async (applied) => {
      if (applied.created.length > 0) await show(applied, undefined, printSecrets);
    },
  };
}

/** Shows a result without secrets: that it cannot be written changes nothing about what was done. */
async function showOrSay(
  applied: AppliedKeys,
  files: SecretFiles | undefined,
  print: ApplyRequest['print'],
): Promise<void> {
  try {
    await show(applied, files, print);
  } catch (error) {
    throw outputFailed(error, hasChanges(applied.plan) ? 'The changes were made.' : 'There was nothing to change.');
  }
}

function show(
  { plan, created }: AppliedKeys,
  files: SecretFiles | undefined,
  print: ApplyRequest['print'],
): Promise<void> {
  const changes = plannedChanges(
    plan,
    created.map(({ key }) => key),
  );
  const counts = countsOf(plan);
  const secrets = created.map(({ secret, key: { name, id } }) =>
    files ? { name, id, file: files.pathOf(name) } : { key: secret, name, id },
  );
  const { created: made, updated, deleted, unchanged } = counts;
  const total = `Applied: ${made} created, ${updated} updated, ${deleted} deleted, ${unchanged} unchanged.`;
  return print({ dryRun: false, changes, ...counts, keys: secrets }, [...diffOf(changes), total].join('\n'));
}

function outputFailed(error: unknown, outcome: string): CliError {
  return new CliError('OUTPUT_FAILED', `${(error as Error).message} ${outcome}`, { cause: error });
}

function nowhereToGo(secrets: number): KeysError {
  const what = secrets === 1 ? 'One key is new, and its secret has' : `${secrets} keys are new, and their secrets have`;
  return new KeysError(
    'USAGE',
    `${what} nowhere to go. Pass --secrets-dir <folder> or --json; --dry-run shows the changes.`,
  );
}
