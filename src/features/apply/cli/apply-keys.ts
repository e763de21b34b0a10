import { spawn } from 'node:child_process';
import type { Client } from '../../../keys/operations/index.ts';
import type { Applied } from '../apply.ts';
import { assertValidDeclaration, type DeclaredKey, readDeclaration } from '../declaration.ts';
import { applyOperations } from '../operations.ts';
import type { PlannedChanges } from '../plan.ts';
import { takeBack } from '../take-back.ts';
import type { PlannedChange } from '../../../keys/key/index.ts';
import type { SecretDelivery } from '../../../keys/changes/index.ts';
import {
  debugTimed,
  DeclarationError,
  type DocumentIssue,
  formatTime,
  KeysError,
  printable,
} from '../../../keys/basics/index.ts';
import type { Catalog } from '../../../keys/permissions/index.ts';
import { describeIssues, locatedText, readYaml } from '../../../yaml/read-yaml.ts';
import { deliverSecrets } from '../../../cli/deliver-secrets.ts';
import { CHANGES_MADE, CliError, InterruptedError } from '../../../cli/errors.ts';
import type { HeldSignals } from '../../../cli/signals.ts';
import { readText } from '../../../cli/input/input.ts';
import { formatDiff } from '../../../cli/views/change-view.ts';
import { type KeysPlace, withAdministration } from '../../../cli/with-keys.ts';
import { SecretFiles, tidyLeftovers, validateFileNames } from './secret-files.ts';

const REVERTED = 'All changes were reverted, because the new secrets could not be delivered.';
const REMOVED = 'New secrets were revoked, because they could not be delivered. Other changes stay.';

interface ApplyRequest {
  /** A path, or `-` for stdin. */
  file: string;
  place: KeysPlace;
  prune: boolean;
  /** Take over declared keys that another key created. */
  adopt: boolean;
  /** Show what would change, and change nothing. */
  dryRun: boolean;
  /** The folder for new secrets. */
  secretsDir: string | undefined;
  /** The command of a shell that gets each new secret on stdin. */
  command: string | undefined;
  /** The output is JSON, and contains secrets that are not written to files. */
  json: boolean;
  print: (json: object, text: string) => Promise<void>;
  /** The same for secrets, which must not get lost. */
  printSecrets: (json: object, text: string) => Promise<void>;
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/** Applies a file, or shows what that would change. @returns the plan */
export async function applyKeys(request: ApplyRequest): Promise<PlannedChanges> {
  const { file, place, secretsDir, dryRun } = request;
  const validate = secretsDir === undefined ? undefined : validateFileNames;
  const declaration = await readDeclarationFile(file, await place.catalog(), validate);
  const options = { ifMissing: dryRun ? 'empty' : 'create' } as const;
  return withAdministration(place, options, (keys) =>
    (dryRun ? preview : apply)(keys, declaration, request).catch((error: unknown) => {
      throw declaration.located(error);
    }),
  );
}

async function preview(
  keys: Client,
  declaration: DeclarationFile,
  { prune, adopt, print }: ApplyRequest,
): Promise<PlannedChanges> {
  const plan = await keys
    .of(applyOperations)
    .applyApiKeys({ declared: declaration.keys, rules: { prune, adopt }, dryRun: true });
  const words = ['to create', 'to update', 'to rotate', 'to renew', 'to delete'] as const;
  await print({ dryRun: true, ...shownOf(plan), keys: [] }, textOf('Plan', plan, words));
  return plan;
}

async function apply(keys: Client, declaration: DeclarationFile, request: ApplyRequest): Promise<PlannedChanges> {
  const { prune, adopt, secretsDir, command, print, note } = request;
  let files: SecretFiles | undefined;
  if (secretsDir !== undefined) {
    const nameOf = keys.findNameOfWorking?.bind(keys);
    const left = { folder: secretsDir, location: keys.location };
    for (const line of nameOf ? await tidyLeftovers({ ...left, nameOf }) : []) await note(line);
    files = new SecretFiles(secretsDir, keys.location);
  }
  const sink = command === undefined ? undefined : new SecretCommand(command, keys);
  const delivery = sink ?? (files ? deliveryInFiles(files) : deliveryInJson(request));
  try {
    const applied = await deliverSecrets(delivery, keys.revertsAll ? REVERTED : REMOVED, async (safe) => {
      const done = await keys
        .of(applyOperations)
        .applyApiKeys({ declared: declaration.keys, rules: { prune, adopt }, delivery: safe });
      sink?.requireTaken();
      return done;
    });
    if (files || sink || secretsOf(applied).length === 0) await showOrSay(applied, { files, sink }, print);
    return applied;
  } catch (error) {
    files?.remove();
    throw error;
  }
}

function deliveryInFiles(files: SecretFiles): SecretDelivery<Applied> {
  return { prepare: (applied) => files.write(secretsOf(applied)), deliver: () => files.publish() };
}

/** Secrets on stdout, which must be JSON. The text has no place for them. */
function deliveryInJson({ json, printSecrets }: ApplyRequest): SecretDelivery<Applied> {
  return {
    prepare: (applied) => {
      if (secretsOf(applied).length > 0 && !json) throw nowhereToGo(applied);
    },
    deliver: async (applied) => {
      if (secretsOf(applied).length > 0) await show(applied, {}, printSecrets);
    },
  };
}

/** Shows a result without secrets. A failure to write it does not undo the apply. */
async function showOrSay(applied: Applied, sinks: Sinks, print: ApplyRequest['print']): Promise<void> {
  try {
    await show(applied, sinks, print);
  } catch (error) {
    throw outputFailed(error, applied.changes.length > 0 ? CHANGES_MADE : 'There was nothing to change.');
  }
}

/** Targets of secrets other than stdout. */
interface Sinks {
  files?: SecretFiles | undefined;
  sink?: SecretCommand | undefined;
}

async function show(applied: Applied, { files, sink }: Sinks, print: ApplyRequest['print']): Promise<void> {
  const keys = secretsOf(applied).map(({ key, apiKey: { name, id } }) => ({
    ...(!files && !sink && { key }),
    name,
    id,
    ...(files && { file: files.pathOf(name) }),
  }));
  const words = ['created', 'updated', 'rotated', 'renewed', 'deleted'] as const;
  await print({ dryRun: false, ...shownOf(applied), keys }, textOf('Applied', applied, words));
}

/** All new secrets, with the keys that have them. */
function secretsOf({ created, rotated }: Applied): Applied['created'] {
  return [...created, ...rotated];
}

function outputFailed(error: unknown, outcome: string): CliError {
  return new CliError('OUTPUT_FAILED', `${(error as Error).message} ${outcome}`, { cause: error });
}

function nowhereToGo({ created, rotated }: Applied): KeysError {
  const secrets = created.length + rotated.length;
  const kind = rotated.length === 0 ? 'new' : created.length === 0 ? 'to be rotated' : 'new or to be rotated';
  const what =
    secrets === 1 ? `One key is ${kind}, and its secret has` : `${secrets} keys are ${kind}, and their secrets have`;
  return new KeysError(
    'USAGE',
    `${what} nowhere to go. Pass --secrets-dir <folder>, --exec <command> or --json; --dry-run shows the changes.`,
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

/** The changes of a plan as JSON. */
function shownOf(plan: PlannedChanges): object {
  const { unchanged } = plan;
  const changes = plan.changes.map(({ secretSince, ...change }) => ({
    ...change,
    ...(secretSince !== undefined && { secretSince: formatTime(secretSince) }),
  }));
  const [created, updated, rotated, renewed, deleted] = countsOf(plan);
  const waiting = plan.waiting.map(({ name, previousEndsAt }) => ({ name, until: formatTime(previousEndsAt) }));
  return { changes, created, updated, rotated, renewed, deleted, unchanged, waiting };
}

/** Counts the changes of a plan by kind. */
function countsOf({ changes }: PlannedChanges): number[] {
  return ACTIONS.map((action) => changes.filter((change) => change.action === action).length);
}

const ACTIONS = ['CREATE', 'UPDATE', 'ROTATE', 'RENEW', 'DELETE'] as const satisfies PlannedChange['action'][];
/** Changes that are shown even if there are none. */
const COUNTED = new Set<PlannedChange['action']>(['CREATE', 'UPDATE', 'DELETE']);

function textOf(what: string, plan: PlannedChanges, words: readonly string[]): string {
  const counts = countsOf(plan).flatMap((count, index) =>
    count > 0 || COUNTED.has(ACTIONS[index]!) ? `${count} ${words[index]!}` : [],
  );
  const waiting = plan.waiting.map(({ name, previousEndsAt }) => {
    const end = previousEndsAt === null ? '' : `, or from ${formatTime(previousEndsAt)} on`;
    return `= wait "${name}" (rotated once its last new secret is in use${end})`;
  });
  const total = `${what}: ${[...counts, `${plan.unchanged} unchanged`].join(', ')}.`;
  return [...formatDiff(plan.changes), ...waiting, total].join('\n');
}

/** The reason a secret was not taken, and whether its key was restored. */
interface Failure {
  name: string;
  reason: string;
  isReverted: boolean;
}

/**
 * Hands each new secret to a command on its stdin, one after another, until a signal comes. What that does not take is
 * taken back.
 */
class SecretCommand {
  readonly #command: string;
  readonly #keys: Client;
  readonly #failures: Failure[] = [];
  #signal: NodeJS.Signals | undefined;

  /** @param command for the shell; its environment has SVC_API_KEY_NAME and SVC_API_KEY_ID */
  constructor(command: string, keys: Client) {
    this.#command = command;
    this.#keys = keys;
  }

  readonly deliver = async ({ created, rotated, changes }: Applied, signals: HeldSignals): Promise<void> => {
    for (const { key, apiKey } of [...created, ...rotated]) {
      const reason = (await signals.first()) ? 'was not run' : await handOver(this.#command, key, apiKey, signals);
      if (reason === undefined) continue;
      const change = changes.find(({ name }) => name === apiKey.name)!;
      const isReverted = await takeBack(this.#keys, apiKey.id, change.action).then(
        () => true,
        () => false,
      );
      this.#failures.push({ name: apiKey.name, reason, isReverted });
    }
    this.#signal = await signals.first();
  };

  /** @throws CliError OUTPUT_FAILED if the command did not take all secrets; InterruptedError if a signal came */
  requireTaken(): void {
    if (this.#failures.length === 0) {
      if (this.#signal) throw new InterruptedError(this.#signal, 'All changes were made.');
      return;
    }
    const texts = this.#failures.map(
      ({ name, reason, isReverted }) =>
        `The command for the secret of "${name}" ${reason}: ` +
        (isReverted ? 'that secret was revoked.' : 'that secret works, and could not be revoked. Rotate the key.'),
    );
    const outcome = `${texts.join('\n')}\nAll other changes were made.`;
    if (this.#signal) throw new InterruptedError(this.#signal, `${outcome} Apply again for the rest.`);
    throw new CliError('OUTPUT_FAILED', outcome);
  }
}

/** Runs the command with a secret on its stdin, without a line feed. @returns why it failed, if it did */
async function handOver(
  command: string,
  secret: string,
  { id, name }: { id: string; name: string },
  signals: HeldSignals,
): Promise<string | undefined> {
  const env = { ...process.env, SVC_API_KEY_ID: id, SVC_API_KEY_NAME: name };
  const run = async () => {
    // Keeps stdout for the result of the apply.
    const child = spawn(command, { shell: true, env, stdio: ['pipe', 2, 2] });
    const ended = signals.passTo(child).catch((error: NodeJS.ErrnoException) => error);
    // A command that does not read all of it says by its exit code whether that is right.
    child.stdin?.on('error', () => {}).end(secret);
    return ended;
  };
  const ended = await debugTimed('a secret was handed over', run, () => ({ name }));
  if (ended instanceof Error) return `could not be run (${printable(ended.code ?? ended.message)})`;
  const [code, signal] = ended;
  if (signal !== null) return `was ended by ${signal}`;
  return code === 0 ? undefined : `exited with ${code}`;
}
