import { BaseCommand } from '../base-command.ts';
import { CliError, ReportedFailure } from '../errors.ts';
import { runCreate } from './create-key.ts';
import { MAX_LIKELY, runDelete, searchIn } from './delete-keys.ts';
import { commandText } from '../output.ts';
import type { KeyRequest } from '../prompts/new-key.ts';
import { hiddenServerFlags, type PlaceFlags, requireStore, serverFlags } from '../server-target.ts';
import { warn } from '../terminal.ts';
import { issuedJson, issuedLines, keyJson } from '../views/key-view.ts';
import { formatCount } from '../views/table.ts';
import { type KeysPlace, keysPlace, withAdministration, withKeys } from '../with-keys.ts';
import type { KeyAdministration, KeyName, KeyState, NamedIssue } from '../../keys/administration.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import { KeysError } from '../../keys/errors.ts';
import type { ApiKey } from '../../keys/key/api-key.ts';
import { normalizeName } from '../../keys/key/name.ts';
import { printable } from '../../keys/text.ts';
import type { OpenKeys, OpenKeysOptions } from '../../service/open-keys.ts';

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

/** What the commands about keys share. */
export abstract class KeyCommand extends BaseCommand {
  static override baseFlags = { ...BaseCommand.baseFlags, ...serverFlags };

  /** Creates a key, and writes its secret to stdout. @returns what was written, as JSON */
  protected async create(
    request: KeyRequest,
    { dryRun = false, ...flags }: PlaceFlags & { dryRun?: boolean | undefined },
  ): Promise<object> {
    return runCreate({
      request,
      place: await this.place(flags),
      terminal: this.terminal,
      interactive: this.interactive,
      assumesYes: this.assumesYes,
      show: ({ key, apiKey: { name, id } }) => this.deliver({ key, name, id }, key),
      ...(dryRun && { preview: (json: object, text: string) => this.deliver(json, text) }),
    });
  }

  /** Deletes the named key, or the chosen ones, and says how many were deleted. */
  protected async delete({ name, ...flags }: PlaceFlags & { name: string | undefined }): Promise<object> {
    const { interactive, assumesYes } = this;
    const place = await this.place(flags);
    const result = await runDelete({ name, place, interactive, assumesYes, json: this.jsonEnabled() });
    if ('deleted' in result) {
      const { issued } = result.deleted;
      const keys = result.deleted.keys.map((key) => ({ id: key.id, name: key.name }));
      const deleted = keys.length;
      const text = `Successfully deleted ${formatCount(deleted, 'API key', 'API keys')}`;
      const shown = await this.printLines({ deleted, keys, ...issuedJson(issued) }, text);
      await this.warnOfIssued(issued, result.deleted.keys[0]!);
      return shown;
    }
    const text = `No API keys found to delete: ${'missing' in result ? result.missing : result.nothing}`;
    if ('nothing' in result) return this.printLines({ deleted: 0, message: text }, text);
    await this.fail({ deleted: 0, error: text }, text);
    throw new ReportedFailure({ code: 'NOT_FOUND', message: text, exit: 1 });
  }

  /** Enables or disables a key, and says what it is now. */
  protected async setEnabled({ args, flags }: NamedInput, enabled: boolean): Promise<object> {
    return this.withKeys(flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, nameOf({ args, flags }));
      const { before, after, issued } = await keys.setEnabled(key, enabled);
      const changed = before.disabledAt !== after.apiKey.disabledAt;
      const { name } = after.apiKey;
      const state = enabled ? 'enabled' : 'disabled';
      const shown = await this.printLines(
        { apiKey: keyJson(after), changed, ...issuedJson(issued) },
        changed ? `API key "${name}" is ${state}` : `API key "${name}" was ${state} already`,
      );
      await this.warnOfIssued(issued, key);
      return shown;
    });
  }

  /** Names what a key did to others, and is in force although the key is not: whoever had the key may have done it. */
  protected async warnOfIssued(issued: readonly NamedIssue[], { id }: KeyName): Promise<void> {
    if (issued.length === 0) return;
    const remedy = `After a leak, undo it: ${commandText(this.config, 'apikey:contain')} ${id}`;
    await warn(this.terminal, [
      [`What it did to others is in force:`, ...issuedLines(issued).map((line) => `  ${line}`), remedy].join('\n'),
    ]);
  }

  /** Whose keys the command works on. @throws KeysError USAGE, UNAUTHENTICATED, CREDENTIALS_INVALID, SERVER_INSECURE */
  protected place(flags: PlaceFlags): Promise<KeysPlace> {
    const login = commandText(this.config, 'login');
    return keysPlace({ flags, env: this.environment, login, additions: (permissions) => this.additions(permissions) });
  }

  /**
   * Works on the keys of a store, which must be there, or of a server.
   * @throws what `place` and `work` throw; KeysError STORE_…
   */
  protected async withKeys<Result>(
    flags: PlaceFlags,
    work: (keys: KeyAdministration) => Promise<Result>,
  ): Promise<Result> {
    return withAdministration(await this.place(flags), { ifMissing: 'fail' }, work);
  }

  /**
   * Opens the store, with all that can be granted, while `work` runs. A missing store is an error unless the command is
   * one that creates it, or previews that: at a mistyped path, a new and empty store would look like an answer.
   * @throws KeysError STORE_…, STORE_REQUIRED where a server is named; what `work` throws
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

  /** Refuses a server, before something is asked for in vain. @throws KeysError STORE_REQUIRED, USAGE */
  protected requireStore(flags: PlaceFlags): void {
    requireStore(flags, this.environment, commandText(this.config, this.ctor.id));
  }

  /** The key of that name. @throws CliError USAGE without a name; KeysError NOT_FOUND */
  protected findKey(keys: KeyAdministration, name: string | undefined): Promise<KeyState> {
    return this.found(name, (given) => keys.find(given), searchIn(keys));
  }

  /** The same in a store. */
  protected findStored(keys: OpenKeys, name: string | undefined): Promise<ApiKey> {
    const search = async (text: string) => (await keys.list({ first: MAX_LIKELY, search: text }, OPERATOR)).keys;
    return this.found(name, (given) => keys.findByName(given, OPERATOR), search);
  }

  /**
   * What is found by a name.
   * @param search keys that contain a text, of which one may have been meant
   * @throws CliError USAGE without a name; KeysError NOT_FOUND
   */
  protected async found<Found>(
    name: string | undefined,
    find: (name: string) => Promise<Found | undefined>,
    search: (text: string) => Promise<readonly { name: string }[]>,
  ): Promise<Found> {
    if (name === undefined)
      throw new CliError('USAGE', 'The name of the key is missing. Pass it as an argument, or by --name <name>.');
    const found = await find(name);
    if (found !== undefined) return found;
    const { didYouMeanKey } = await import('../explain/did-you-mean.ts');
    const wanted = normalizeName(name);
    const remedy =
      (await didYouMeanKey(wanted, search)) ?? `Run "${commandText(this.config, 'apikey:list')}" to see all.`;
    throw new KeysError('NOT_FOUND', `There is no API key named "${printable(wanted)}". ${remedy}`);
  }
}

/** What the commands about keys share that need the key store itself, and say so where a server is named. */
export abstract class StoreCommand extends KeyCommand {
  static override baseFlags = { ...BaseCommand.baseFlags, ...hiddenServerFlags };
}
