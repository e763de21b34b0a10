import type { ApiKey } from '../../keys/key/api-key.ts';
import { KeysError } from '../../keys/errors.ts';
import { normalizeName } from '../../keys/key/name.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';
import { printable } from '../../keys/text.ts';
import type { OpenKeys, OpenKeysOptions } from '../../open-keys.ts';
import { BaseCommand } from '../base-command.ts';
import type { KeyRequest } from '../prompts/new-key.ts';
import { runCreate } from './create-key.ts';
import { runDelete } from './delete-keys.ts';
import { CliError } from '../errors.ts';
import { ReportedFailure } from '../failure.ts';
import { commandText } from '../command-text.ts';
import { hasFlag } from '../output.ts';
import { countOf } from '../views/count.ts';
import { type KeyJson, keyJson } from '../views/key-view.ts';
import { withKeys } from '../with-keys.ts';

/** The name of a key, as an argument or as a flag. */
export interface NamedInput {
  args: { name?: string | undefined };
  flags: { name?: string | undefined; database?: string | undefined };
}

/** The given name, if any. @throws CliError USAGE if there are two */
export function nameOf({ args, flags }: NamedInput): string | undefined {
  if (args.name !== undefined && flags.name !== undefined)
    throw new CliError('USAGE', 'The name of the key is given twice: as an argument and by --name. Leave one out.');
  return args.name ?? flags.name;
}

/** What the commands about keys share. */
export abstract class KeyCommand extends BaseCommand {
  /** Whether missing values may be asked for. */
  protected get interactive(): boolean {
    return this.terminal.canPrompt && !this.jsonEnabled() && !hasFlag(this.argv, '--no-input');
  }

  /** Whether confirmations are answered with yes. */
  private get assumesYes(): boolean {
    return hasFlag(this.argv, '--yes');
  }

  /** Creates a key, and writes its secret to stdout. @returns what was written, as JSON */
  protected async create(
    request: KeyRequest,
    { database, dryRun = false }: { database: string | undefined; dryRun?: boolean | undefined },
  ): Promise<object> {
    return runCreate({
      request,
      database,
      additions: (permissions) => this.additions(permissions),
      terminal: this.terminal,
      interactive: this.interactive,
      assumesYes: this.assumesYes,
      show: ({ secret, key }) => this.deliver({ key: secret, name: key.name, id: key.id }, secret),
      ...(dryRun && { preview: (json: object, text: string) => this.print(json, text) }),
    });
  }

  /** Deletes the named key, or the chosen ones, and says how many were deleted. */
  protected async delete({
    name,
    database,
  }: {
    name: string | undefined;
    database: string | undefined;
  }): Promise<object> {
    const { interactive, assumesYes } = this;
    const result = await runDelete({ name, database, interactive, assumesYes, json: this.jsonEnabled() });
    if ('deleted' in result) {
      const deleted = result.deleted.length;
      const keys = result.deleted.map((key) => ({ id: key.id, name: key.name }));
      return this.print({ deleted, keys }, `Successfully deleted ${countOf(deleted, 'API key', 'API keys')}`);
    }
    const text = `No API keys found to delete: ${'missing' in result ? result.missing : result.nothing}`;
    if ('nothing' in result) return this.print({ deleted: 0, message: text }, text);
    await this.fail({ deleted: 0, error: text }, text);
    throw new ReportedFailure({ code: 'NOT_FOUND', message: text, exit: 1 });
  }

  /** Enables or disables a key, and says what it is now. */
  protected async setEnabled({ args, flags }: NamedInput, enabled: boolean): Promise<object> {
    return this.withKeys(flags.database, async (keys) => {
      const key = await this.findKey(keys, nameOf({ args, flags }));
      const { before, after } = await keys.setEnabled(key.id, enabled, OPERATOR);
      const changed = before.disabledAt !== after.disabledAt;
      const state = enabled ? 'enabled' : 'disabled';
      return this.print(
        { key: await this.describe(keys, after), changed },
        changed ? `API key "${after.name}" is ${state}` : `API key "${after.name}" was ${state} already`,
      );
    });
  }

  /**
   * Opens the store, with all that can be granted, while `work` runs. A missing store is an error unless the command is
   * one that creates it, or previews that: at a mistyped path, a new and empty store would look like an answer.
   * @throws KeysError STORE_…; what `work` throws
   */
  protected async withKeys<Result>(
    database: string | undefined,
    work: (keys: OpenKeys) => Promise<Result>,
    ifMissing: OpenKeysOptions['ifMissing'] = 'fail',
  ): Promise<Result> {
    return withKeys({ database, ...(await this.additions()), ifMissing }, work);
  }

  /** A key as JSON, with how much it was used. */
  protected async describe(keys: OpenKeys, key: ApiKey): Promise<KeyJson> {
    const [[chain], usage] = await Promise.all([keys.chainsOf([key]), keys.usageOf([key.id])]);
    return keyJson(chain!, keys, usage.get(key.id));
  }

  /** The key of that name. @throws CliError USAGE without a name; KeysError NOT_FOUND */
  protected async findKey(keys: OpenKeys, name: string | undefined): Promise<ApiKey> {
    if (name === undefined)
      throw new CliError('USAGE', 'The name of the key is missing. Pass it as an argument, or by --name <name>.');
    const key = await keys.findByName(name, OPERATOR);
    if (key) return key;
    const remedy = `Run "${commandText(this.config, 'apikey:list')}" to see all.`;
    throw new KeysError('NOT_FOUND', `There is no API key named "${printable(normalizeName(name))}". ${remedy}`);
  }
}
