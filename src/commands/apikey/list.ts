import * as Flags from '@oclif/core/flags';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { listFlags, readNumber } from '../../cli/input/key-flags.ts';
import { type KeyJson, keyJson, fieldText } from '../../cli/views/key-view.ts';
import { tableOf } from '../../cli/views/table.ts';
import { cursorOf } from '../../keys/list.ts';
import { OPERATOR } from '../../keys/authorization/principal.ts';

const HEAD = [
  'NAME',
  'STATUS',
  'ROLES',
  'PERMISSIONS',
  'PREFIX',
  'CREATED',
  'EXPIRES',
  'LAST USED',
  'USES',
  'ROTATION',
];

export default class List extends KeyCommand {
  static override summary = 'List API keys, oldest first.';
  static override description =
    'Prints a table on a terminal, otherwise one tab-separated line per key. Secrets are never shown.';
  static override examples = [
    { description: 'List the keys with full access', command: '<%= config.bin %> <%= command.id %> --roles ADMIN' },
    {
      description: 'List the names of the expired keys',
      command: '<%= config.bin %> <%= command.id %> --status expired | cut -f 1',
    },
    { description: 'List the first ten, as JSON', command: '<%= config.bin %> <%= command.id %> --limit 10 --json' },
  ];
  static override flags = {
    ...listFlags,
    limit: Flags.string({ description: 'Maximum number of keys, up to 500. Default: 50.', helpValue: '<number>' }),
    after: Flags.string({
      description: 'Cursor to continue after, as given by the previous page.',
      helpValue: '<cursor>',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(List);
    const { roles, status, search, after, database } = flags;
    const { page, keys } = await this.withKeys(database, async (open) => {
      const listed = await open.list(
        { first: readNumber(flags.limit, '--limit'), roles, status, search, after },
        OPERATOR,
      );
      const ids = listed.keys.map(({ id }) => id);
      const [chains, usage] = [await open.chainsOf(listed.keys), await open.usageOf(ids)];
      return { page: listed, keys: chains.map((chain) => keyJson(chain, open, usage.get(chain.keys[0].id))) };
    });
    const last = page.keys.at(-1);
    const next = page.hasNextPage && last ? cursorOf(last) : null;
    await this.print(
      { keys, next },
      keys.length === 0 ? undefined : await tableOf(HEAD, keys.map(rowOf), this.terminal.isTerminal),
    );
    if (this.jsonEnabled()) return;
    if (keys.length === 0) await this.terminal.note('No API keys found.');
    if (next) await this.terminal.note(`More keys follow: pass --after ${next}`);
  }
}

function rowOf(key: KeyJson): string[] {
  const { name, status, roles, permissions, prefix, createdAt, expiresAt, lastUsedAt, uses, rotation } = key;
  return [name, status, roles, permissions, prefix, createdAt, expiresAt, lastUsedAt, uses, rotation].map(fieldText);
}
