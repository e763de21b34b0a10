import { OPERATOR } from '../../keys/authorization/index.ts';
import {
  assertValid,
  formatTime,
  isKeysError,
  type Issue,
  KeysError,
  formatList,
  MAX_PAGE_SIZE,
  printable,
  timeAndDistance,
  UUID,
} from '../../keys/basics/index.ts';
import { type ManyChangeRequest, type UndeletingChange, warningsOf } from '../../keys/changes/index.ts';
import {
  type ApiKey,
  givenFieldsOf,
  type NewKey,
  normalizeName,
  restrictionTexts,
  validateChange,
  validateName,
  validateNewKey,
} from '../../keys/key/index.ts';
import type { KeyFilters } from '../../keys/lists/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import type { Client } from '../../keys/operations/index.ts';
import type { CatalogAdditions } from '../../keys/permissions/index.ts';
import type { CommandAddition, RunningCommand } from '../../feature.ts';
import type { Created, Deleted, KeyName, KeyState, NamedIssue, Preview } from '../../keys/service/index.ts';
import type { OpenKeys, OpenKeysOptions } from '../../service/open-keys.ts';
import { BaseCommand } from '../base-command.ts';
import { deliverSecrets } from '../deliver-secrets.ts';
import { CHANGES_MADE, CliError, ReportedFailure, shownText } from '../errors.ts';
import { commandText, formatCount } from '../output.ts';
import { filtersOf, WHERE } from '../input/key-flags.ts';
import type { KeyRequest } from '../prompts/new-key.ts';
import type { Page } from '../prompts/with-prompts.ts';
import { warn } from '../terminal.ts';
import { issuedJson, issuedLines, keyJson } from '../views/key-view.ts';
import {
  hiddenServerFlags,
  type KeysPlace,
  type PlaceFlags,
  remotePlace,
  requireStore,
  serverFlags,
  serverTarget,
  storePlace,
  withAdministration,
  withKeys,
} from '../with-keys.ts';

/** A key whose secret was lost must not exist: only an attacker could still find the secret. */
const REVERTED = 'The key was removed again, because its secret was not delivered.';
const REPLACED = 'The key that it replaced stays deleted.';

async function ask(request: KeyRequest, keys: Client, assumesYes: boolean): Promise<KeyRequest> {
  const { askForKey } = await import('../prompts/new-key.ts');
  return askForKey(request, await keys.permissions({}), {
    exists: async (name) => (await keys.apiKey({ name })) != null,
    doubt: async (name) => {
      const warnings = warningsOf(await keys.findConfusableNames(name));
      return warnings.length > 0 ? `${warnings.join(' ')} Create it anyway?` : undefined;
    },
    assumesYes,
  });
}

/** The key that would be created, as JSON. */
function previewJson({ effectivePermissions, ...key }: Preview): object {
  return { ...givenFieldsOf(key), expiresAt: formatTime(key.expiresAt), effectivePermissions };
}

function missingName({ name }: KeyRequest): Issue[] {
  if (name !== undefined) return [];
  const message =
    'The name is missing. Pass --name <name>; you can only be asked for it on a terminal, without --json and --no-input.';
  return [{ code: 'USAGE', message }];
}

function describe({ apiKey: key, replaced }: Created): string {
  const grants = [
    key.roles.length > 0 ? `roles ${formatList(key.roles)}` : '',
    key.permissions.length > 0 ? `permissions ${formatList(key.permissions)}` : '',
  ];
  const verb = replaced.length > 0 ? 'Replaced' : 'Created';
  const children = replaced.length - 1;
  const were = formatCount(children, 'key that it had created was', 'keys that it had created were');
  const lost = children > 0 ? ` ${were} deleted.` : '';
  const what = `${verb} API key "${key.name}" (${prefixOf(key.publicId)})`;
  const end = key.expiresAt === null ? 'does not expire' : `expires ${timeAndDistance(key.expiresAt, key.createdAt)}`;
  const held = formatList([end, ...restrictionTexts(key)]);
  return `${what} with ${grants.filter(Boolean).join(' and ')}. It ${held}.${lost} Its secret is not shown again.`;
}

/** The deleted keys, or why there are none: no such key, no keys to choose from, or none chosen. */
type Deletion = { deleted: Deleted } | { missing: string } | { nothing: string };

async function deleteNamed(keys: Client, name: string): Promise<Deletion> {
  const found = await keys.apiKey({ name });
  const deleted = found && (await keys.deleteApiKeys({ ids: [found.apiKey.id] }));
  if (deleted && deleted.keys.length > 0) return { deleted };
  // A mistyped path must not look as if the key were deleted.
  if (!keys.exists) return { missing: `no API key is named "${name}": the key store ${keys.location} does not exist` };
  const { didYouMeanKey } = await import('../explain/did-you-mean.ts');
  const question = await didYouMeanKey(name, searchIn(keys));
  return { missing: `no API key is named "${name}"${question === undefined ? '' : `. ${question}`}` };
}

/** The number of keys considered for a misspelled name. */
const MAX_LIKELY = 50;

export function searchIn(keys: Client): (text: string) => Promise<readonly KeyName[]> {
  return async (search) =>
    (await keys.apiKeys({ query: { first: MAX_LIKELY, search } })).keys.map(({ apiKey }) => apiKey);
}

/** The keys that match a search, or the first ones; an exact match comes first. */
async function searchByName(keys: Client, search?: string): Promise<Page> {
  const page = await keys.apiKeys({ query: { first: MAX_PAGE_SIZE, search } });
  const found = page.keys.map(({ apiKey }) => apiKey);
  const named = search === undefined ? undefined : (await keys.apiKey({ name: search }))?.apiKey;
  const { hasNextPage } = page;
  return { keys: named ? [named, ...found.filter(({ id }) => id !== named.id)] : found, hasNextPage };
}

function nobodyToAsk(): CliError {
  return new CliError(
    'USAGE',
    'The key to delete is missing. Pass --name <name>; ' +
      'you can only choose keys on a terminal, without --json and --no-input.',
  );
}

/** The name of a key, as an argument or as a flag. */
interface NamedInput {
  args: { name?: string | undefined };
  flags: PlaceFlags & { name?: string | undefined };
}

/** The given name, if any. @throws CliError USAGE if there are two */
export function nameOf({ args, flags }: NamedInput): string | undefined {
  if (args.name !== undefined && flags.name !== undefined)
    throw new CliError('USAGE', 'The name of the key is given twice: as an argument and by --name. Leave one out.');
  return args.name ?? flags.name;
}

export abstract class KeyCommand extends BaseCommand {
  static override baseFlags = { ...BaseCommand.baseFlags, ...serverFlags };

  /** Runs a feature's work if one of the flags that it adds is given. @returns its result; undefined if none is */
  protected async runAddition(
    additions: readonly CommandAddition[],
    flags: PlaceFlags & Readonly<Record<string, unknown>>,
  ): Promise<object | undefined> {
    const isGiven = (name: string) => flags[name] !== undefined;
    const addition = additions.find((each) => Object.keys(each.flags).some(isGiven));
    return addition?.run?.(this.running(flags));
  }

  /** This command, for a feature. */
  protected running(
    flags: PlaceFlags & Readonly<Record<string, unknown>>,
    args: readonly string[] = [],
  ): RunningCommand {
    const isOwn = (name: string) => name !== 'json' && !Object.hasOwn(this.ctor.baseFlags, name);
    return {
      args,
      flags: Object.fromEntries(Object.entries(flags).filter(([name]) => isOwn(name))),
      isJson: this.jsonEnabled(),
      loadConfig: (onUnmet) => this.loadConfig(onUnmet),
      terminal: this.terminal,
      withKeys: (work) => this.withKeys(flags, work),
      withStored: (name, additions, work) => {
        this.requireStore(flags);
        const options = { database: flags.database, ...additions, ifMissing: 'fail' } as const;
        return withKeys(options, async (keys) => work(keys, await this.findStored(keys, name)));
      },
      write: (text) => this.write(text),
      print: (json, text) => this.print(json, text),
      printLines: (json, text) => this.printLines(json, text),
    };
  }

  /**
   * Creates a key, and writes its secret to stdout. Asks for missing values if possible.
   * @param flags with `dryRun`, the key is only shown, not created
   * @returns the output as JSON
   */
  protected async create(
    request: KeyRequest,
    { dryRun = false, ...flags }: PlaceFlags & { dryRun?: boolean | undefined },
  ): Promise<object> {
    const place = await this.place(flags);
    const complete = request.name !== undefined && (request.roles ?? request.permissions) !== undefined;
    const prompting = this.interactive && !complete;
    const grants = prompting || dryRun ? undefined : (request.permissions ?? []);
    const catalog = await place.catalog(grants);
    const now = Date.now();
    assertValid(
      prompting
        ? validateChange(request, catalog, now)
        : [...missingName(request), ...validateNewKey(request, catalog, now)],
    );
    return withAdministration(place, { ifMissing: dryRun ? 'empty' : 'create', grants }, async (keys) => {
      const answered = prompting ? await ask(request, keys, this.assumesYes) : request;
      const input = { ...answered, name: answered.name ?? '' };
      return dryRun ? this.preview(keys, input) : this.createIn(keys, input);
    });
  }

  /** Shows the key that would be created, with all its permissions. */
  private async preview(keys: Client, input: NewKey): Promise<object> {
    const planned = await keys.previewApiKey({ input });
    const shown = await this.print(previewJson(planned), planned.effectivePermissions.join('\n'));
    await warn(this.terminal, warningsOf(planned.confusable));
    return shown;
  }

  private async createIn(keys: Client, input: NewKey): Promise<object> {
    let shown: object = {};
    const deliver = async ({ key, apiKey: { name, id } }: Created) => {
      shown = await this.deliver({ key, name, id }, key);
    };
    const reverted = input.overwrite && !keys.revertsAll ? `${REVERTED} ${REPLACED}` : REVERTED;
    const created = await deliverSecrets({ deliver }, reverted, (delivery) => keys.createApiKey({ input, delivery }));
    await this.terminal.note(describe(created));
    await warn(this.terminal, warningsOf(created.confusable));
    return shown;
  }

  /** Deletes the named key, or the chosen ones, and says how many were deleted. */
  protected async delete({ name, ...flags }: PlaceFlags & { name: string | undefined }): Promise<object> {
    const place = await this.place(flags);
    if (name !== undefined) assertValid([validateName(name)].filter((issue) => issue !== undefined));
    // With `--json`, a store without keys is an answer, not a usage error.
    if (name === undefined && !this.interactive && !this.jsonEnabled()) throw nobodyToAsk();
    const result = await withAdministration(place, { ifMissing: 'empty', grants: 'none' }, (keys) =>
      name === undefined ? this.deleteChosen(keys) : deleteNamed(keys, normalizeName(name)),
    );
    if ('deleted' in result) return this.showDeleted(result.deleted);
    const text = `No API keys found to delete: ${'missing' in result ? result.missing : result.nothing}`;
    if ('nothing' in result) return this.printLines({ deleted: 0, message: text }, text);
    await this.fail({ deleted: 0, error: text }, text);
    throw new ReportedFailure({ code: 'NOT_FOUND', message: text, exit: 1 });
  }

  private async deleteChosen(keys: Client): Promise<Deletion> {
    const page = await searchByName(keys);
    if (page.keys.length === 0) return { nothing: `there are none in ${keys.location}` };
    if (!this.interactive) throw nobodyToAsk();
    const { chooseKeys } = await import('../prompts/with-prompts.ts');
    const ids = await chooseKeys(page, (search) => searchByName(keys, search), this.assumesYes);
    return ids.length === 0 ? { nothing: 'none was chosen' } : { deleted: await keys.deleteApiKeys({ ids }) };
  }

  protected async showDeleted({ keys: all, issued }: Deleted): Promise<object> {
    const keys = all.map(({ id, name }) => ({ id, name }));
    if (keys.length > 0) this.done = CHANGES_MADE;
    const text = `Successfully deleted ${formatCount(keys.length, 'API key', 'API keys')}`;
    const shown = await this.printLines({ deleted: keys.length, keys, ...issuedJson(issued) }, text);
    if (keys.length > 0) await this.warnOfIssued(issued, keys[0]!);
    return shown;
  }

  protected async setEnabled({ args, flags }: NamedInput, enabled: boolean): Promise<object> {
    return this.withKeys(flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, nameOf({ args, flags }));
      return this.setFoundEnabled(keys, key, enabled);
    });
  }

  protected async setFoundEnabled(keys: Client, key: KeyState['apiKey'], enabled: boolean): Promise<object> {
    const { before = key, after, issued } = await keys.setApiKeyEnabled({ id: key.id, enabled });
    const changed = before.disabledAt !== after.apiKey.disabledAt;
    if (changed) this.done = CHANGES_MADE;
    const { name } = after.apiKey;
    const state = enabled ? 'enabled' : 'disabled';
    const shown = await this.printLines(
      { apiKey: keyJson(after), changed, ...issuedJson(issued) },
      changed ? `API key "${name}" is ${state}` : `API key "${name}" was ${state} already`,
    );
    await this.warnOfIssued(issued, key);
    return shown;
  }

  /**
   * Changes all keys selected by a name or by filters, or none: shows them, asks, and makes the change.
   * @param verb such as `disable`, with a past tense in -d
   */
  protected async changeSelected(
    {
      name,
      ...flags
    }: PlaceFlags & Parameters<typeof filtersOf>[0] & { name?: string | undefined; 'dry-run'?: boolean | undefined },
    request: ManyChangeRequest,
    verb: string,
  ): Promise<object> {
    const dryRun = flags['dry-run'] ?? false;
    if (!dryRun) this.requireAnswer(`${verb} the keys, or --dry-run to see which`);
    const { planAll, planJson, planText, selectAll } = await import('./change-many.ts');
    return this.withKeys(flags, async (keys) => {
      const prefix = request.what === 'UPDATE' ? WHERE : undefined;
      const found =
        name === undefined
          ? await selectAll(keys, await this.filters(keys, flags, prefix))
          : [(await this.findKey(keys, name)).apiKey];
      const plan = await planAll(keys, found, request);
      const ids = plan.changing.map(({ id }) => id);
      const text = shownText(planText(plan, verb));
      if (dryRun || (ids.length === 0 && request.what !== 'DELETE')) return this.print(planJson(plan, dryRun), text);
      if (ids.length === 0) {
        const nothing = 'No API keys found to delete: none matches.';
        return this.printLines({ deleted: 0, message: nothing }, nothing);
      }
      const what = formatCount(ids.length, 'API key', 'API keys');
      await this.confirm(`${verb[0]!.toUpperCase()}${verb.slice(1)} ${what}?`, text);
      if (request.what === 'DELETE') return this.showDeleted(await keys.deleteApiKeys({ ids }));
      const change = request.what === 'UPDATE' ? keys.updateApiKeys : keys.narrowApiKeys;
      const changed = await change({ ids, request: request as UndeletingChange });
      if (changed.length > 0) this.done = CHANGES_MADE;
      return this.printLines(
        planJson({ ...plan, changing: changed }, false),
        `Successfully ${verb}d ${formatCount(changed.length, 'API key', 'API keys')}`,
      );
    });
  }

  /**
   * Warns about effects of a key on other keys that are still in force although the key is not: a thief may have caused
   * them.
   */
  protected async warnOfIssued(issued: readonly NamedIssue[], { id }: KeyName): Promise<void> {
    if (issued.length === 0) return;
    const remedy = `After a leak, undo them: ${commandText(this.config, 'apikey:revoke')} ${id} --undo-changes`;
    await warn(this.terminal, [
      [`Its effects on other keys are still in force:`, ...issuedLines(issued).map((line) => `  ${line}`), remedy].join(
        '\n',
      ),
    ]);
  }

  /**
   * Determines the key store or server to work on, without opening it.
   * @throws KeysError USAGE, UNAUTHENTICATED, CREDENTIALS_INVALID, SERVER_INSECURE
   */
  protected async place(flags: PlaceFlags): Promise<KeysPlace> {
    const target = await serverTarget(flags, this.environment, commandText(this.config, 'apikey:login'));
    return target ? remotePlace(target) : storePlace(flags.database, (permissions) => this.additions(permissions));
  }

  private readable: Promise<CatalogAdditions> | undefined;

  /** The declared grants, or none with a warning if they cannot be read: for commands that take access away. */
  protected readableAdditions(): Promise<CatalogAdditions> {
    this.readable ??= super.additions().catch(async (error: unknown) => {
      if (!isKeysError(error) || !/^(CONFIG|SCHEMA)_/.test(error.code)) throw error;
      await warn(this.terminal, [`${error.message}\nKeys can be disabled, revoked and deleted all the same.`]);
      return {};
    });
    return this.readable;
  }

  /**
   * Works on the keys of an existing store, or of a server.
   * @throws errors of `place` and `work`; KeysError STORE_…
   */
  protected async withKeys<Result>(flags: PlaceFlags, work: (keys: Client) => Promise<Result>): Promise<Result> {
    return withAdministration(await this.place(flags), { ifMissing: 'fail' }, work);
  }

  /**
   * Opens the store with all grants while `work` runs. A missing store is an error, except for commands that create it
   * or preview that: at a mistyped path, a new empty store would look like an answer.
   * @throws KeysError STORE_…, STORE_REQUIRED if a server is named; errors of `work`
   */
  protected async withStore<Result>(
    flags: PlaceFlags,
    work: (keys: OpenKeys) => Promise<Result>,
    ifMissing: OpenKeysOptions['ifMissing'] = 'fail',
  ): Promise<Result> {
    const { database } = flags;
    this.requireStore(flags);
    return withKeys({ database, ...(await this.additions()), ifMissing }, work);
  }

  /** Refuses a server, before asking any questions. @throws KeysError STORE_REQUIRED, USAGE */
  protected requireStore(flags: PlaceFlags): void {
    requireStore(flags, this.environment, commandText(this.config, this.ctor.id));
  }

  /**
   * The filters in flags.
   * @param prefix see `filtersOf`
   * @throws KeysError INPUT_INVALID, NOT_FOUND for a key that does not exist
   */
  protected async filters(keys: Client, flags: Parameters<typeof filtersOf>[0], prefix?: string): Promise<KeyFilters> {
    const filters = filtersOf(flags, prefix);
    const { parent } = flags;
    if (parent === undefined) return filters;
    const id = parent.toLowerCase();
    return { ...filters, createdBy: UUID.test(id) ? id : (await this.findKey(keys, parent)).apiKey.id };
  }

  /** The key with that name. @throws CliError USAGE without a name; KeysError NOT_FOUND */
  protected findKey(keys: Client, name: string | undefined): Promise<KeyState> {
    return this.found(name, (given) => keys.apiKey({ name: given }), searchIn(keys));
  }

  protected findStored(keys: OpenKeys, name: string | undefined): Promise<ApiKey> {
    const search = async (text: string) => (await keys.list({ first: MAX_LIKELY, search: text }, OPERATOR)).keys;
    return this.found(name, (given) => keys.findByName(given, OPERATOR), search);
  }

  /**
   * The result of a search by name.
   * @param search keys that contain a text, for suggestions
   * @throws CliError USAGE without a name; KeysError NOT_FOUND
   */
  protected async found<Found>(
    name: string | undefined,
    find: (name: string) => Promise<Found | null | undefined>,
    search: (text: string) => Promise<readonly { name: string }[]>,
  ): Promise<Found> {
    if (name === undefined)
      throw new CliError('USAGE', 'The name of the key is missing. Pass it as an argument, or by --name <name>.');
    const found = await find(name);
    if (found != null) return found;
    const { didYouMeanKey } = await import('../explain/did-you-mean.ts');
    const wanted = normalizeName(name);
    const remedy =
      (await didYouMeanKey(wanted, search)) ?? `Run "${commandText(this.config, 'apikey:list')}" to see all.`;
    throw new KeysError('NOT_FOUND', `There is no API key named "${printable(wanted)}". ${remedy}`);
  }
}

/** The base of commands about keys that need the key store itself, and refuse a server. */
export abstract class StoreCommand extends KeyCommand {
  static override baseFlags = { ...BaseCommand.baseFlags, ...hiddenServerFlags };
}
