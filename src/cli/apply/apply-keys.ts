import type { Applied, KeyAdministration } from '../../keys/service/index.ts';
import {
  assertValidDeclaration,
  DeclarationError,
  type DeclaredKey,
  type PlannedChanges,
  readDeclaration,
} from '../../keys/apply/index.ts';
import type { PlannedChange } from '../../keys/key/index.ts';
import type { SecretDelivery } from '../../keys/changes/index.ts';
import { type DocumentIssue, KeysError, printable } from '../../keys/basics/index.ts';
import type { Catalog } from '../../keys/permissions/index.ts';
import { describeIssues, locatedText, readYaml } from '../../yaml/read-yaml.ts';
import { CliError, deliverSecrets } from '../errors.ts';
import { readText } from '../input/input.ts';
import { changeText, fieldText } from '../views/key-view.ts';
import type { KeysPlace } from '../with-keys.ts';
import { SecretFiles, tidyLeftovers, validateFileNames } from './secret-files.ts';

const REVERTED = 'All changes were reverted, because nobody has the new secrets.';
const REMOVED = 'New keys were removed again, because nobody has their secrets. Other changes stay.';

interface ApplyRequest {
  /** A path, or `-` for stdin. */
  file: string;
  place: KeysPlace;
  prune: boolean;
  /** Take over declared keys that another key created. */
  adopt: boolean;
  /** Show what would change, and change nothing. */
  dryRun: boolean;
  /** The folder for the secrets of new keys. */
  secretsDir: string | undefined;
  /** Whether the output is JSON, which holds the secrets that are not in files. */
  json: boolean;
  print: (json: object, text: string) => Promise<void>;
  /** The same for what somebody must get. */
  printSecrets: (json: object, text: string) => Promise<void>;
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/** Brings the keys to what a file declares, or shows what that would change. @returns the plan */
export async function applyKeys(request: ApplyRequest): Promise<PlannedChanges> {
  const { file, place, secretsDir, dryRun } = request;
  const validate = secretsDir === undefined ? undefined : validateFileNames;
  const declaration = await readDeclarationFile(file, await place.catalog(), validate);
  const keys = await place.open({ ifMissing: dryRun ? 'empty' : 'create' });
  try {
    return await (dryRun ? preview : apply)(keys, declaration, request);
  } catch (error) {
    throw declaration.located(error);
  } finally {
    await keys.close();
  }
}

async function preview(
  keys: KeyAdministration,
  declaration: DeclarationFile,
  { prune, adopt, print }: ApplyRequest,
): Promise<PlannedChanges> {
  const plan = await keys.declarations.plan(declaration.keys, { prune, adopt });
  const counts = countsOf(plan);
  const { changes } = plan;
  const { created, updated, deleted, unchanged } = counts;
  const total = `Plan: ${created} to create, ${updated} to update, ${deleted} to delete, ${unchanged} unchanged.`;
  await print({ dryRun: true, changes, ...counts, keys: [] }, [...formatDiff(changes), total].join('\n'));
  return plan;
}

async function apply(
  keys: KeyAdministration,
  declaration: DeclarationFile,
  request: ApplyRequest,
): Promise<PlannedChanges> {
  const { prune, adopt, secretsDir, print, note } = request;
  let files: SecretFiles | undefined;
  if (secretsDir !== undefined) {
    const nameOf = keys.findNameOfWorking?.bind(keys);
    const left = { folder: secretsDir, location: keys.location };
    for (const line of nameOf ? await tidyLeftovers({ ...left, nameOf }) : []) await note(line);
    files = new SecretFiles(secretsDir, keys.location);
  }
  const delivery = files ? deliveryInFiles(files) : deliveryInJson(request);
  try {
    const applied = await deliverSecrets(delivery, keys.revertsAll ? REVERTED : REMOVED, (safe) =>
      keys.declarations.apply(declaration.keys, { prune, adopt }, safe),
    );
    if (files || applied.created.length === 0) await showOrSay(applied, files, print);
    return applied;
  } catch (error) {
    files?.remove();
    throw error;
  }
}

function deliveryInFiles(files: SecretFiles): SecretDelivery<Applied> {
  return { prepare: ({ created }) => files.write(created), deliver: () => files.publish() };
}

/** Secrets on stdout, which must be JSON. The text has no place for them. */
function deliveryInJson({ json, printSecrets }: ApplyRequest): SecretDelivery<Applied> {
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
  applied: Applied,
  files: SecretFiles | undefined,
  print: ApplyRequest['print'],
): Promise<void> {
  try {
    await show(applied, files, print);
  } catch (error) {
    throw outputFailed(error, applied.changes.length > 0 ? 'The changes were made.' : 'There was nothing to change.');
  }
}

function show(applied: Applied, files: SecretFiles | undefined, print: ApplyRequest['print']): Promise<void> {
  const { changes, created } = applied;
  const counts = countsOf(applied);
  const secrets = created.map(({ key, apiKey: { name, id } }) =>
    files ? { name, id, file: files.pathOf(name) } : { key, name, id },
  );
  const { created: made, updated, deleted, unchanged } = counts;
  const total = `Applied: ${made} created, ${updated} updated, ${deleted} deleted, ${unchanged} unchanged.`;
  return print({ dryRun: false, changes, ...counts, keys: secrets }, [...formatDiff(changes), total].join('\n'));
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

interface DeclarationFile {
  keys: readonly DeclaredKey[];
  /** The error to throw instead: a `DeclarationError` gets lines and columns, any other stays as it is. */
  located(error: unknown): unknown;
}

/**
 * Reads declared keys from a YAML file, or from stdin if the path is `-`.
 * @param check finds further issues in the declared keys
 * @throws KeysError INPUT_INVALID if it can't be read; DECLARATION_INVALID with the line and column of each issue
 */
async function readDeclarationFile(
  path: string,
  catalog: Catalog,
  check: (keys: readonly DeclaredKey[]) => DocumentIssue[] = () => [],
): Promise<DeclarationFile> {
  const name = path === '-' ? 'stdin' : printable(path, 200);
  const read = await readYaml(await readText(path, name));
  if ('issues' in read) throw new KeysError('DECLARATION_INVALID', locatedText(name, read.issues));
  const located = (error: unknown) => {
    if (!(error instanceof DeclarationError)) return error;
    return new KeysError('DECLARATION_INVALID', describeIssues(name, error.issues, read.positionOf));
  };
  try {
    const keys = await readDeclaration(read.value, catalog);
    assertValidDeclaration(check(keys));
    return { keys, located };
  } catch (error) {
    throw located(error);
  }
}

/** How many keys a plan creates, updates and deletes, and how many it leaves unchanged. */
interface PlanCounts {
  created: number;
  updated: number;
  deleted: number;
  unchanged: number;
}

function countsOf({ changes, unchanged }: PlannedChanges): PlanCounts {
  const count = (action: PlannedChange['action']) => changes.filter((change) => change.action === action).length;
  return { created: count('CREATE'), updated: count('UPDATE'), deleted: count('DELETE'), unchanged };
}

/** Changes as a diff: `+` for a new key, `~` for one that changes, `-` for one that is deleted. */
export function formatDiff(changes: readonly PlannedChange[]): string[] {
  return changes.flatMap(({ action, name, changes: fields = [] }) => {
    if (action === 'DELETE') return [`- delete "${name}"`];
    if (action === 'UPDATE') return [`~ update "${name}"`, ...fields.map((change) => `    ${changeText(change)}`)];
    return [`+ create "${name}"`, ...fields.map(({ field, after }) => `    ${field}: ${fieldText(after)}`)];
  });
}
